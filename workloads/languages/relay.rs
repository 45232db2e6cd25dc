//! Messages made by tasks on all workers of tokio and consumed by others, as a server does: docs/rust.md has the figures.
//! Needs tokio 1 with the features `rt-multi-thread`, `sync` and `macros`; built twice, once with the feature `masu`.

use tokio::sync::mpsc;

#[cfg(feature = "masu")]
#[global_allocator]
static GLOBAL: masu::Masu = masu::Masu::new();

#[tokio::main]
async fn main() {
    let mut consumers = Vec::new();
    let mut makers = Vec::new();
    for _ in 0..8 {
        let (to, mut from) = mpsc::channel::<(usize, Vec<String>)>(256);
        consumers.push(tokio::spawn(async move {
            let mut kept = std::collections::BTreeMap::new();
            let mut bytes = 0;
            while let Some((n, words)) = from.recv().await {
                bytes += words.iter().map(String::len).sum::<usize>();
                kept.insert(n % 5000, words);
            }
            bytes
        }));
        for maker in 0..4 {
            let to = to.clone();
            makers.push(tokio::spawn(async move {
                for n in 0..12_500 {
                    let words = (0..8).map(|k| "word ".repeat(1 + (n + k) % 9)).collect();
                    to.send((n * 4 + maker, words)).await.expect("the consumer lives");
                }
            }));
        }
    }
    for maker in makers {
        maker.await.expect("no maker fails");
    }
    let mut bytes = 0;
    for consumer in consumers {
        bytes += consumer.await.expect("no consumer fails");
    }
    println!("{bytes}");
}
