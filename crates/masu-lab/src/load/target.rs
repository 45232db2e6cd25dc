//! A request: a URL, perhaps with a body, ready to be sent again and again.

use std::net::{SocketAddr, ToSocketAddrs};

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{HOST, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Uri};

use masu_run::Error;

/// One request to send: `GET` of a URL, or `POST` of a body to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    text: String,
    uri: Uri,
    host: HeaderValue,
    authority: String,
    addresses: Vec<SocketAddr>,
    body: Option<Bytes>,
}

impl Target {
    /// Understands `http://HOST[:PORT]/PATH` and looks the host up. Anything else is an error.
    pub fn new(url: &str) -> Result<Target, Error> {
        let wrong = |reason: String| Error::Load { load: url.to_owned(), reason };
        let (uri, host, port) = parse(url).map_err(&wrong)?;
        let addresses: Vec<SocketAddr> = (host.as_str(), port)
            .to_socket_addrs()
            .map_err(|error| wrong(format!("{host} cannot be looked up: {error}")))?
            .collect();
        if addresses.is_empty() {
            return Err(wrong(format!("{host} has no address")));
        }
        let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
        let header = HeaderValue::from_str(&authority).map_err(|error| wrong(error.to_string()))?;
        // A server gets only the path over the wire; a proxy would get the whole URL.
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let path: Uri = path.parse().map_err(|error| wrong(format!("odd path: {error}")))?;
        Ok(Target {
            text: url.to_owned(),
            uri: path,
            host: header,
            authority: format!("{host}:{port}"),
            addresses,
            body: None,
        })
    }

    /// The same target with `body`, if there is one, which makes the request a `POST`.
    pub(crate) fn with_body(self, body: Option<Bytes>) -> Target {
        Target { body, ..self }
    }

    /// Checks that [`Target::new`] would understand `url` with a number for each placeholder, without looking anything
    /// up.
    pub fn check(url: &str) -> Result<(), Error> {
        let mut parts = url.split('{');
        let mut filled = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            filled.push('1');
            filled += part.split_once('}').map_or(part, |(_, behind)| behind);
        }
        let wrong = |reason: String| Error::Load { load: url.to_owned(), reason };
        parse(&filled).map(drop).map_err(wrong)
    }

    /// The URL as it was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The request to send; copies share the body.
    pub(super) fn request(&self) -> Request<Full<Bytes>> {
        let body = self.body.clone();
        let method = if body.is_some() { Method::POST } else { Method::GET };
        let mut request = Request::new(Full::new(body.unwrap_or_default()));
        *request.method_mut() = method;
        *request.uri_mut() = self.uri.clone();
        request.headers_mut().insert(HOST, self.host.clone());
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_static("masu"));
        request
    }
}

/// The URL's parts: the whole, the host without brackets, the port.
fn parse(url: &str) -> Result<(Uri, String, u16), String> {
    let advice = "write http://HOST[:PORT]/PATH";
    if url.starts_with("https://") {
        return Err("only http:// can be asked: encryption would be measured with the server; \
                    let it listen without, or give a load command"
            .to_owned());
    }
    let uri: Uri = url.parse().map_err(|error| format!("no URL ({error}); {advice}"))?;
    if uri.scheme_str() != Some("http") {
        return Err(format!("no http URL; {advice}"));
    }
    let authority = uri.authority().ok_or_else(|| format!("no host; {advice}"))?;
    if authority.as_str().contains('@') {
        return Err(format!("a user's name cannot be sent; {advice}"));
    }
    let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
    let port = match authority.port_u16() {
        Some(port) => port,
        None if authority.as_str().ends_with(authority.host()) => 80,
        None => return Err(format!("no port number; {advice}")),
    };
    if host.is_empty() {
        return Err(format!("no host; {advice}"));
    }
    Ok((uri, host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(url: &str) -> String {
        Target::check(url).unwrap_err().to_string()
    }

    #[test]
    fn a_url_is_taken_apart() {
        let target = Target::new("http://127.0.0.1:8080/a?b=c").unwrap();
        assert_eq!(target.authority(), "127.0.0.1:8080");
        assert_eq!(target.addresses(), ["127.0.0.1:8080".parse().unwrap()]);
        let request = target.request();
        assert_eq!(request.uri(), "/a?b=c");
        assert_eq!(request.headers()[HOST], "127.0.0.1:8080");
        assert_eq!(request.method(), Method::GET);
        assert_eq!(Target::new("http://127.0.0.1").unwrap().authority(), "127.0.0.1:80");
        assert_eq!(Target::new("http://[::1]:81/").unwrap().authority(), "::1:81");
    }

    #[test]
    fn a_body_makes_it_a_post() {
        let target = Target::new("http://127.0.0.1/").unwrap().with_body(Some("x".into()));
        assert_eq!(target.request().method(), Method::POST);
    }

    #[test]
    fn what_is_no_http_url_is_refused_with_what_to_write() {
        assert!(reason("https://localhost/").contains("only http://"));
        for url in ["", "localhost:80", "ftp://localhost/", "http://", "http://a b/", "/path"] {
            assert!(reason(url).contains("http://HOST"), "{url}: {}", reason(url));
        }
        assert!(reason("http://me:secret@localhost/").contains("user's name"));
        assert!(reason("http://localhost:99999/").contains("http://HOST"));
        Target::check("http://{host}:{port}/{size}?{").unwrap();
    }
}
