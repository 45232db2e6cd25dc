//! The request for servers on the command line or in a suite file, in words, and the plan made from it.
//!
//! The rules for combining settings, and the defaults, are decided here once.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper::body::Bytes;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::urls::{self, urls_of};
use super::{DEFAULT_BURST, DEFAULT_READY_WITHIN, LatencyRate, Load, Ready, ServerPlan};
use crate::load::{DEFAULT_CONNECTIONS, DEFAULT_TIMEOUT, Pace, is_url};
use crate::written::{Word, time};
use masu_run::Error;
use masu_run::error::Doing;
use masu_run::parameter::{Values, substitute};

/// The requested settings; none for each setting that was not requested.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ServerRequest {
    /// A URL, an address or a command that shows whether a server is ready.
    pub ready: Option<String>,
    /// The most time until a server is ready.
    #[serde(default, deserialize_with = "time")]
    pub ready_within: Option<Duration>,
    /// URLs, `@FILE` for those of a file, or one command.
    #[serde(deserialize_with = "loads")]
    pub load: Vec<String>,
    /// The file with the body to post to the URLs.
    pub load_body: Option<PathBuf>,
    pub connections: Option<usize>,
    /// Requests a second; back to back if none.
    pub rate: Option<f64>,
    /// The rate for the latencies, after requests back to back.
    #[serde(default, deserialize_with = "latency_rate")]
    pub latency_rate: Option<LatencyRate>,
    /// The longest a request may take.
    #[serde(default, deserialize_with = "time")]
    pub request_timeout: Option<Duration>,
    #[serde(default, deserialize_with = "time")]
    pub burst: Option<Duration>,
    #[serde(default)]
    pub one_at_a_time: bool,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "write a URL, a list of them, or a command")]
enum Loads {
    One(String),
    Several(Vec<String>),
}

/// URLs, or a command, one or several.
fn loads<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(match Loads::deserialize(from)? {
        Loads::One(load) => vec![load],
        Loads::Several(loads) => loads,
    })
}

/// A rate, or a share of another, written as a text or a number.
fn latency_rate<'de, D>(from: D) -> Result<Option<LatencyRate>, D::Error>
where
    D: Deserializer<'de>,
{
    Word::deserialize(from)?.text().parse().map(Some).map_err(D::Error::custom)
}

impl ServerRequest {
    /// The plan, without a counting library; relative paths start at `base`. Where no check is given, a server is ready
    /// when the first URL is answered, or under a load command when its port takes connections. Settings that exclude
    /// each other are an error.
    pub fn plan(mut self, base: &Path) -> Result<ServerPlan, Error> {
        self.load = urls_of(self.load, base)?;
        let wrong = |load: &str, reason: &str| {
            Err(Error::Load { load: load.to_owned(), reason: reason.to_owned() })
        };
        let Some(first) = self.load.first().cloned() else {
            return wrong("", "none given; say what the server has to do: a URL, or a command");
        };
        let urls = self.load.iter().filter(|load| is_url(load)).count();
        if urls > 0 && urls < self.load.len() {
            return wrong(&first, "URLs and commands cannot be mixed; give URLs or one command");
        }
        if urls == 0 && self.load.len() > 1 {
            return wrong(&first, "only one command can be the load; let it start the others");
        }
        let is_http_only = self.connections.is_some()
            || self.rate.is_some()
            || self.latency_rate.is_some()
            || self.load_body.is_some()
            || self.request_timeout.is_some()
            || self.burst.is_some();
        if urls == 0 && is_http_only {
            let reason = "connections, rate, body, request timeout and length of a burst are for \
                          URLs; a command says them itself";
            return wrong(&first, reason);
        }
        if self.rate.is_some() && self.latency_rate.is_some() {
            let reason = "a rate for the whole burst and one for its second half (latency-rate) \
                          exclude each other; the second is for throughput and latencies in one run";
            return wrong(&first, reason);
        }
        if self.burst.is_some_and(|burst| burst.is_zero()) {
            return wrong(&first, "a burst must last some time");
        }
        let ready = match self.ready {
            Some(text) => Ready::parse(&text)?,
            None if urls > 0 => Ready::Url(first.clone()),
            None => Ready::Port,
        };
        let read = |path: PathBuf| {
            let path = base.join(path);
            fs::read(&path).doing(|| format!("reading {}", path.display()))
        };
        let load = if urls > 0 {
            Load::Http {
                urls: self.load,
                body: self.load_body.map(read).transpose()?.map(Bytes::from),
                connections: self.connections.unwrap_or(DEFAULT_CONNECTIONS),
                pace: match self.rate {
                    Some(rate) => Pace::Open { rate },
                    None => Pace::Closed,
                },
                latency_rate: self.latency_rate,
                timeout: self.request_timeout.unwrap_or(DEFAULT_TIMEOUT),
            }
        } else {
            Load::Command(first)
        };
        let plan = ServerPlan {
            ready,
            ready_within: self.ready_within.unwrap_or(DEFAULT_READY_WITHIN),
            load,
            burst: self.burst.unwrap_or(DEFAULT_BURST),
            one_at_a_time: self.one_at_a_time,
            counting: None,
        };
        plan.check()?;
        Ok(plan)
    }
}

impl ServerPlan {
    pub(crate) fn texts(&self) -> Vec<&OsStr> {
        let load = match &self.load {
            Load::Command(text) => std::slice::from_ref(text),
            Load::Http { urls, .. } => urls,
        };
        self.ready.text().into_iter().chain(load).map(OsStr::new).collect()
    }

    pub(crate) fn with(&self, values: &Values) -> ServerPlan {
        let settle =
            |text: &String| substitute(text.as_ref(), values).to_string_lossy().into_owned();
        let mut plan = self.clone();
        match &mut plan.ready {
            Ready::Port => {}
            Ready::Address(text) | Ready::Url(text) | Ready::Command(text) => *text = settle(text),
        }
        match &mut plan.load {
            Load::Command(text) => *text = settle(text),
            Load::Http { urls, .. } => urls.iter_mut().for_each(|url| *url = settle(url)),
        }
        plan
    }

    /// The requested settings, by their names in suite files.
    pub fn settings(&self) -> Vec<(String, String)> {
        let mut settings = Vec::new();
        let mut add = |name: &str, value: String| settings.push((name.to_owned(), value));
        let seconds = |time: Duration| format!("{}s", time.as_secs_f64());
        if let Some(text) = self.ready.text() {
            add("ready", text.clone());
        }
        match &self.load {
            Load::Command(text) => add("load", text.clone()),
            Load::Http { urls, body, connections, pace, latency_rate, timeout } => {
                add("load", urls::listing(urls));
                if let Some(body) = body {
                    add("load-body", format!("{} bytes", body.len()));
                }
                add("connections", connections.to_string());
                if let Pace::Open { rate } = pace {
                    add("rate", rate.to_string());
                }
                if let Some(rate) = latency_rate {
                    add("latency-rate", rate.to_string());
                }
                add("request-timeout", seconds(*timeout));
                add("burst", seconds(self.burst));
            }
        }
        if self.one_at_a_time {
            add("one-at-a-time", "true".to_owned());
        }
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(texts: &[&str]) -> ServerRequest {
        ServerRequest {
            load: texts.iter().map(|&text| text.to_owned()).collect(),
            ..ServerRequest::default()
        }
    }

    fn reason(asked: ServerRequest) -> String {
        asked.plan("".as_ref()).unwrap_err().to_string()
    }

    #[test]
    fn a_url_is_asked_back_to_back_and_tells_when_the_server_is_ready() {
        let url = "http://127.0.0.1:{port}/";
        let plan = load(&[url]).plan("".as_ref()).unwrap();
        assert_eq!(plan.ready, Ready::Url(url.to_owned()));
        assert!(matches!(plan.load, Load::Http { pace: Pace::Closed, connections: 8, .. }));
        let given: Vec<String> = plan.settings().into_iter().map(|(name, _)| name).collect();
        assert_eq!(given, ["ready", "load", "connections", "request-timeout", "burst"]);
    }

    #[test]
    fn anything_else_is_a_command_and_the_port_tells() {
        let plan = load(&["ab -n 10 http://127.0.0.1:{port}/"]).plan("".as_ref()).unwrap();
        assert_eq!(plan.ready, Ready::Port);
        assert!(matches!(plan.load, Load::Command(_)));
        let ready = Some("redis-cli -p {port} ping".to_owned());
        let plan = ServerRequest { ready, ..load(&["true"]) }.plan("".as_ref()).unwrap();
        assert!(matches!(plan.ready, Ready::Command(_)));
        let ready = Some("127.0.0.1:{port}".to_owned());
        let plan = ServerRequest { ready, ..load(&["true"]) }.plan("".as_ref()).unwrap();
        assert_eq!(plan.settings()[0], ("ready".to_owned(), "127.0.0.1:{port}".to_owned()));
    }

    #[test]
    fn what_does_not_go_together_is_refused_with_what_to_do() {
        let url = "http://127.0.0.1:{port}/";
        assert!(reason(load(&[])).contains("none given"));
        assert!(reason(load(&[url, "ab"])).contains("cannot be mixed"));
        assert!(reason(load(&["ab", "wrk"])).contains("only one command"));
        assert!(reason(load(&["https://localhost/"])).contains("only http://"));
        assert!(
            reason(ServerRequest { rate: Some(1.0), ..load(&["ab"]) }).contains("says them itself")
        );
        assert!(reason(ServerRequest { rate: Some(0.0), ..load(&[url]) }).contains("positive"));
        assert!(
            reason(ServerRequest { connections: Some(0), ..load(&[url]) }).contains("connections")
        );
        let burst = Some(Duration::ZERO);
        assert!(reason(ServerRequest { burst, ..load(&[url]) }).contains("some time"));
        let latency_rate = Some(LatencyRate::PerSecond(5.0));
        let both = ServerRequest { rate: Some(1.0), latency_rate, ..load(&[url]) };
        assert!(reason(both).contains("exclude each other"));
        assert!(
            reason(ServerRequest { latency_rate, ..load(&["ab"]) }).contains("says them itself")
        );
    }

    #[test]
    fn a_rate_for_latencies_leaves_the_verdict_to_throughput() {
        let latency_rate = Some("50%".parse().unwrap());
        let plan = ServerRequest { latency_rate, ..load(&["http://127.0.0.1:{port}/"]) }
            .plan("".as_ref())
            .unwrap();
        assert_eq!(plan.primary(), crate::Measure::Throughput);
        assert!(plan.settings().contains(&("latency-rate".to_owned(), "50%".to_owned())));
    }
}
