//! `masu compare --server`: nginx from end to end, and the refusals before anything starts.

use std::fs;

use crate::{failure, masu, printed};

/// A configuration with places for the port and the data folder.
const NGINX: &str = "\
daemon off; user root; worker_processes 1; pid DIR/pid; error_log stderr error; events {}
http { access_log off; client_body_temp_path DIR/1; proxy_temp_path DIR/2;
fastcgi_temp_path DIR/3; uwsgi_temp_path DIR/4; scgi_temp_path DIR/5;
server { listen 127.0.0.1:PORT; location / { return 200 hello; } } }
";

const URL: &str = "http://127.0.0.1:{port}/";

fn compare(arguments: &[&str]) -> String {
    printed(masu(&["compare"]).args(arguments))
}

/// The figure under `key` in one burst's record, as written in the file.
fn figure<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let after = line.split_once(&format!("\"{key}\":"))?.1;
    after.split([',', '}']).next()
}

#[test]
fn nginx_is_compared_with_every_figure_of_servers() {
    let folder = tempfile::tempdir().unwrap();
    let (config, results) = (folder.path().join("nginx.in"), folder.path().join("runs.jsonl"));
    fs::write(&config, NGINX).unwrap();
    let prepare = format!(
        "sed 's#DIR#{{dir}}#g; s#PORT#{{port}}#' {} > {{dir}}/nginx.conf",
        config.display()
    );
    let page = compare(
        &[
            ["-n", "2", "-a", "system", "-a", "masu", "--server", "--burst", "100ms"].as_slice(),
            &["--load", URL, "--prepare", &prepare, "--json", results.to_str().unwrap(), "--"],
            &["nginx", "-e", "stderr", "-c", "{dir}/nginx.conf"],
        ]
        .concat(),
    );
    for word in ["answers/s", "p99", "CPU/req", "CPU without load", "allocations a request"] {
        assert!(page.contains(word), "{word}: {page}");
    }
    let text = fs::read_to_string(&results).unwrap();
    let bursts: Vec<&str> =
        text.lines().filter(|line| line.starts_with("{\"record\":\"run\"")).collect();
    assert!(bursts.len() >= 4, "{text}");
    for burst in bursts {
        assert_eq!(figure(burst, "errors"), Some("0"), "{burst}");
        // Counted by the library that masu carries; nginx asks for some memory with each request.
        let allocations: f64 = figure(burst, "allocations_a_request").unwrap().parse().unwrap();
        assert!((0.1..100.0).contains(&allocations), "{burst}");
    }
    let settings = text.lines().next().unwrap();
    assert!(settings.contains("[\"burst\",\"0.1s\"]"), "{settings}");
}

#[test]
fn a_suite_file_can_compare_servers() {
    let folder = tempfile::tempdir().unwrap();
    let suite = folder.path().join("redis.toml");
    let text = r#"
        rounds = 2
        variants = ["system", "glibc"]
        [[workload]]
        name = "redis"
        command = ["redis-server", "--port", "{port}", "--dir", "{dir}", "--save", ""]
        [workload.server]
        ready = "redis-cli -p {port} ping"
        load = "redis-benchmark -q -p {port} -n 200 -c 2 -t set"
    "#;
    fs::write(&suite, text).unwrap();
    let page = compare(&["--suite", suite.to_str().unwrap()]);
    assert!(page.contains("libjemalloc.so.2"), "{page}");
    fs::write(&suite, text.replace("load = ", "rate = 5\nload = ")).unwrap();
    let (message, code) = failure(&["compare", "--suite", suite.to_str().unwrap()]);
    assert_eq!(code, 2);
    assert!(message.contains("says them itself") && message.contains("line "), "{message}");
}
