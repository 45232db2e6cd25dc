//! The load against servers of our own that answer, err, hang up, stand still or are missing.
//! Every assertion holds on the slowest machine: delays only ever grow.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use super::*;

/// A server that does `serve` with each connection, for as long as the test process lives.
struct Server {
    port: u16,
}

/// A server's reaction to a request; the number counts requests over all connections, from one.
type Answer = fn(&Seen, u64, &mut TcpStream);

#[derive(Default)]
struct Seen {
    requests: AtomicU64,
    /// The first line of each request.
    lines: Mutex<Vec<String>>,
    still: Mutex<()>,
}

impl Server {
    fn new(answer: Answer) -> (Server, Arc<Seen>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Seen::default());
        let shared = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let seen = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, answer, &seen));
            }
        });
        (Server { port }, seen)
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

fn serve(mut stream: TcpStream, answer: Answer, seen: &Seen) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|length| length > 0) {
        if line.starts_with("GET ") {
            seen.lines.lock().unwrap().push(line.clone());
        }
        if line == "\r\n" {
            let number = seen.requests.fetch_add(1, Ordering::Relaxed) + 1;
            answer(seen, number, &mut stream);
        }
        line.clear();
    }
}

fn say(stream: &mut TcpStream, status: &str, extra: &str) {
    let body = "x".repeat(1000);
    let text = format!("HTTP/1.1 {status}\r\nContent-Length: 1000\r\n{extra}\r\n{body}");
    // The client may have given up on the answer.
    let _ = stream.write_all(text.as_bytes());
}

fn fine(_: &Seen, _: u64, stream: &mut TcpStream) {
    say(stream, "200 OK", "");
}

fn plan(url: &str, connections: usize, pace: Pace) -> LoadPlan {
    let targets = vec![Target::new(url).unwrap()];
    LoadPlan { targets, connections, pace, timeout: Duration::from_secs(20) }
}

fn open(rate: f64) -> Pace {
    Pace::Open { rate }
}

/// The requests that are due in a second at this rate.
fn due_in_a_second(rate: f64) -> u64 {
    let mut schedule = Schedule::new(open(rate));
    (0..).take_while(|_| schedule.advance() < Duration::from_secs(1)).count() as u64
}

fn met(plan: LoadPlan, window: Duration) -> Met {
    Client::new(plan).unwrap().run(window, &Stop::never())
}

const SHORT: Duration = Duration::from_millis(300);

#[test]
fn closed_loop_asks_back_to_back_on_kept_connections() {
    let (server, seen) = Server::new(fine);
    let mut client = Client::new(plan(&server.url("/"), 3, Pace::Closed)).unwrap();
    let first = client.run(SHORT, &Stop::never());
    let second = client.run(SHORT, &Stop::never());
    // Each connection asks at least once, however busy the machine is.
    assert!(first.answered >= 3 && second.answered >= 3, "{first:?}");
    assert_eq!(first.failures, Failures::default());
    assert_eq!(first.answered + second.answered, seen.requests.load(Ordering::Relaxed));
    assert!(first.in_window <= first.answered && first.elapsed >= first.window);
    let latencies = first.latencies().unwrap();
    assert!(latencies.p50 > 0.0 && latencies.p50 <= latencies.p99);
    assert!(latencies.p99 <= latencies.p999 && latencies.p999 <= latencies.max);
}

#[test]
fn every_connection_asks_once_however_short_the_burst_is() {
    let (server, _) = Server::new(fine);
    let met = met(plan(&server.url("/"), 3, Pace::Closed), Duration::from_nanos(1));
    assert_eq!((met.answered, met.in_window), (3, 0));
}

#[test]
fn open_loop_sends_what_is_due_and_no_more() {
    let (server, seen) = Server::new(fine);
    let met = met(plan(&server.url("/"), 4, open(200.0)), Duration::from_secs(1));
    assert_eq!(met.answered + met.failures.total(), due_in_a_second(200.0));
    assert_eq!(seen.requests.load(Ordering::Relaxed), met.answered);
}

/// Every request takes 20 ms.
fn slow(_: &Seen, _: u64, stream: &mut TcpStream) {
    std::thread::sleep(Duration::from_millis(20));
    say(stream, "200 OK", "");
}

#[test]
fn a_rate_that_is_not_reached_is_said() {
    let (server, _) = Server::new(slow);
    // One connection gets at most 50 answers a second.
    let met = met(plan(&server.url("/"), 1, open(100.0)), Duration::from_secs(1));
    assert!(met.notes.iter().any(|note| note.contains("not reached")), "{met:?}");
    assert!(met.in_window <= 50, "{met:?}");
}

/// The 50th request takes 400 ms, and no other is answered in that time.
fn stall(seen: &Seen, number: u64, stream: &mut TcpStream) {
    let still = seen.still.lock().unwrap();
    if number == 50 {
        std::thread::sleep(Duration::from_millis(400));
    }
    drop(still);
    say(stream, "200 OK", "");
}

#[test]
fn a_stall_is_met_by_every_request_that_was_due_meanwhile() {
    let (server, _) = Server::new(stall);
    // 390 requests, of which two in five are due while the server stands still; one connection alone waits.
    let met = met(plan(&server.url("/"), 1, open(400.0)), Duration::from_secs(1));
    let latencies = met.latencies().unwrap();
    // Requests that were due in its first quarter waited for three quarters: 40 requests, ten per cent.
    assert!(latencies.p90 >= 0.3, "{latencies:?}");
    assert!(latencies.p99 >= 0.38, "{latencies:?}");
}

#[test]
fn errors_are_counted_by_kind_and_connections_come_back() {
    let answer: Answer = |_, number, stream| match number % 4 {
        0 => say(stream, "503 Service Unavailable", ""),
        1 => say(stream, "200 OK", "Connection: close\r\n"),
        2 => stream.shutdown(std::net::Shutdown::Both).unwrap_or_default(),
        _ => say(stream, "200 OK", ""),
    };
    let (server, _) = Server::new(answer);
    let mut client = Client::new(plan(&server.url("/"), 1, Pace::Closed)).unwrap();
    // A burst of one request.
    let mut ask = || client.run(Duration::from_nanos(1), &Stop::never());
    for _ in 0..3 {
        let (closed, broken, fine, status) = (ask(), ask(), ask(), ask());
        assert_eq!([&closed, &broken, &fine, &status].map(|met| met.answered), [1, 0, 1, 0]);
        assert_eq!((broken.failures.broken, broken.failures.total()), (1, 1));
        let failures = status.failures;
        assert_eq!((failures.status, failures.total(), failures.last_status), (1, 1, Some(503)));
        assert!(failures.to_string().contains("answered with status 503"), "{failures}");
    }
}

#[test]
fn a_request_without_an_answer_is_given_up_and_its_wait_counts() {
    let (server, _) = Server::new(|_, _, _| std::thread::sleep(Duration::from_secs(1000)));
    let mut plan = plan(&server.url("/"), 2, Pace::Closed);
    plan.timeout = Duration::from_millis(100);
    let met = met(plan, SHORT);
    assert_eq!(met.answered, 0);
    assert!(met.failures.timed_out >= 2, "{met:?}");
    assert!(met.latencies().unwrap().p50 >= 0.099, "{met:?}");
}

#[test]
fn what_was_due_and_never_sent_counts_as_failed_with_its_wait() {
    let (server, _) = Server::new(|_, _, _| std::thread::sleep(Duration::from_secs(1000)));
    let mut plan = plan(&server.url("/"), 1, open(100.0));
    plan.timeout = Duration::from_millis(400);
    let met = met(plan, Duration::from_secs(1));
    assert_eq!(met.answered + met.failures.total(), due_in_a_second(100.0));
    assert!(met.failures.never_sent > 50, "{met:?}");
    assert!(met.latencies().unwrap().p50 >= 0.4, "{met:?}");
}

#[test]
fn a_server_that_is_not_there_refuses_everything() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let met = met(plan(&format!("http://127.0.0.1:{port}/"), 2, Pace::Closed), SHORT);
    assert_eq!(met.answered, 0);
    assert!(met.failures.refused >= 2 && met.latencies().is_none());
    // Two connections that rest for 10 ms after each refusal.
    assert!(met.failures.refused <= 2 * 31, "{met:?}");
}

#[test]
fn urls_are_asked_in_turn() {
    let (server, seen) = Server::new(fine);
    let mut plan = plan(&server.url("/a"), 1, Pace::Closed);
    plan.targets.push(Target::new(&server.url("/b")).unwrap());
    let met = met(plan.clone(), SHORT);
    let lines = seen.lines.lock().unwrap().clone();
    assert_eq!(lines.len() as u64, met.answered);
    let in_turn = ["GET /a ", "GET /b "].into_iter().cycle();
    assert!(lines.iter().zip(in_turn).all(|(line, start)| line.starts_with(start)), "{lines:?}");
    plan.targets.push(Target::new("http://127.0.0.1:1/").unwrap());
    let error = Client::new(plan).unwrap_err().to_string();
    assert!(error.contains("same server"), "{error}");
}

#[test]
fn a_stop_ends_a_burst_whatever_the_server_does() {
    let (server, _) = Server::new(|_, _, _| std::thread::sleep(Duration::from_secs(1000)));
    let mut plan = plan(&server.url("/"), 2, open(10.0));
    plan.timeout = Duration::from_secs(1000);
    let stop = Stop::never();
    stop.request();
    // It would take longer than any test may.
    let met = Client::new(plan).unwrap().run(Duration::from_secs(1000), &stop);
    assert_eq!(met.answered, 0);
}

#[test]
fn plans_that_ask_for_nothing_are_refused() {
    let wrong = |connections, pace| {
        Client::new(plan("http://127.0.0.1:1/", connections, pace)).unwrap_err().to_string()
    };
    for connections in [0, 1 << 40] {
        assert!(wrong(connections, Pace::Closed).contains("ask for 1 to 50000"), "{connections}");
    }
    for rate in [0.0, -1.0, 1e9, f64::NAN, f64::INFINITY] {
        assert!(wrong(1, open(rate)).contains("positive"), "{rate}");
    }
}

#[test]
fn redirects_are_not_followed_and_named() {
    let (server, seen) = Server::new(|_, _, stream| say(stream, "302 Found", "Location: /x\r\n"));
    let met = met(plan(&server.url("/"), 1, Pace::Closed), Duration::from_millis(100));
    assert!(met.answered > 0 && met.failures.total() == 0, "{met:?}");
    assert_eq!(seen.requests.load(Ordering::Relaxed), met.answered);
    assert!(met.notes.iter().any(|note| note.contains("status 302")), "{met:?}");
    let (server, _) = Server::new(fine);
    let met = self::met(plan(&server.url("/"), 1, Pace::Closed), Duration::from_millis(100));
    assert!(!met.notes.iter().any(|note| note.contains("redirect")), "{met:?}");
}
