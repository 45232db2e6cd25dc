//! `masu doctor` on the machine the tests run on, whatever that allows.

use crate::{json, masu, printed};

/// The names under which JSON has the prices.
const SERVICES: [&str; 13] = [
    "system_call", "page_fault", "page_return", "huge_page_fault", "break_pair", "map_pair",
    "thread", "context_switch", "futex_wake", "small_write", "terminal_write", "counted_call",
    "counted_call_cpu",
];

#[test]
fn the_page_has_facts_prices_and_noise_within_80_columns() {
    let text = printed(&mut masu(&["doctor"]));
    for name in ["mallocs", "huge pages", "overcommit", "tracing", "system call", "same work"] {
        assert!(text.contains(name), "{name} is missing: {text}");
    }
    assert!(text.contains("glibc") || text.contains("musl"), "{text}");
    let marks =
        text.lines().filter(|line| line.starts_with("! ") && !line.contains("limit")).count();
    let last = text.lines().last().unwrap();
    assert_eq!(marks == 0, last.starts_with("Nothing limits"), "{text}");
    // The page prints words of others, the CPU's name and paths, which may be longer than a line.
    let long = |text: &str, most| text.lines().any(|line| line.chars().count() > most);
    assert!(!long(&text, 80), "{text}");
    let narrow = printed(masu(&["doctor"]).env("COLUMNS", "40"));
    let (_, prices) = narrow.split_once("\nprices").unwrap();
    assert!(!long(prices, 40), "{narrow}");
}

#[test]
fn the_json_says_its_version_and_has_every_price_or_the_reason() {
    let all = json(&mut masu(&["doctor", "--json"]));
    assert_eq!((&all["schema"], &all["version"]), (&"masu-doctor".into(), &1.into()));
    let services = |list: &str| {
        let list = all["prices"][list].as_array().unwrap().iter();
        list.map(|one| one["service"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let mut all_services = services("known");
    all_services.extend(services("unknown"));
    all_services.sort();
    let mut expected = SERVICES.map(str::to_owned);
    expected.sort();
    assert_eq!(all_services, expected);
    for price in all["prices"]["known"].as_array().unwrap() {
        assert!(price["median_ns"].as_f64().unwrap() > 0.0, "{price}");
    }
    for fact in all["facts"].as_array().unwrap() {
        let limits = fact["standing"] == "limits";
        assert_eq!(fact["remedy"].is_string(), limits, "{fact}");
    }
    assert!(all["noise"]["piece_s"].is_f64() && all["machine"]["cpus"].is_u64(), "{all}");
}
