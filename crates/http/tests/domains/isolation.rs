//! One host that misbehaves slows down nobody else.

use crate::hosts::{answer, ms, within};
use gleaner_http::{DomainSettings, Domains};
use std::time::Duration;
use tokio::time::Instant;

const TIME: Duration = Duration::from_secs(120);

/// Requests that ten healthy hosts get answered in two minutes.
async fn healthy(domains: &Domains) -> u32 {
    let workers: Vec<_> = (0..10)
        .map(|number| {
            let domains = domains.clone();
            tokio::spawn(async move {
                let (end, mut done) = (Instant::now() + TIME, 0);
                while Instant::now() < end {
                    let host = format!("healthy{number}.com");
                    let Ok(permit) = domains.acquire(&host, &within(ms(5000))).await else { continue };
                    answer(permit, 200, ms(20 + 10 * number), "").await;
                    done += 1;
                }
                done
            })
        })
        .collect();
    let mut done = 0;
    for worker in workers {
        done += worker.await.unwrap();
    }
    done
}

/// Hosts that are dead, banning, slow and overloaded, with workers of their own.
fn misbehave(domains: &Domains) {
    for (host, status, latency, retry_after) in [
        ("dead1.com", 0, 3000, ""),
        ("dead2.com", 0, 1, ""),
        ("banning.com", 403, 20, ""),
        ("slow.com", 200, 10_000, ""),
        ("broken.com", 500, 10, ""),
        ("closed.com", 429, 10, "3600"),
        ("throttling.com", 429, 10, ""),
    ] {
        for _ in 0..20 {
            let domains = domains.clone();
            tokio::spawn(async move {
                loop {
                    match domains.acquire(host, &within(ms(2000))).await {
                        Ok(permit) => drop(answer(permit, status, ms(latency), retry_after).await),
                        Err(_) => crate::hosts::provider_takes(ms(200)).await,
                    }
                }
            });
        }
    }
}

#[tokio::test(start_paused = true)]
async fn healthy_hosts_get_as_much_with_misbehaving_ones_as_without() {
    let alone = healthy(&Domains::new(DomainSettings::default()).unwrap()).await;
    let domains = Domains::new(DomainSettings::default()).unwrap();
    misbehave(&domains);
    let beside = healthy(&domains).await;
    println!("{alone} alone, {beside} beside seven hosts that misbehave");
    assert!(alone > 10_000, "{alone}");
    assert!(f64::from(beside) >= 0.95 * f64::from(alone), "{beside} of {alone}");
}
