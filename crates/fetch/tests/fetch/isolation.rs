//! Bad hosts cost the good ones nothing noticeable.

use crate::support::{Host, Reply, answer, settings, told};
use gleaner_fetch::Stop;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

fn is_full_size() -> bool {
    std::env::var_os("GLEANER_TEST_ALL").is_some()
}

/// Hosts in all, and URLs of each.
fn size() -> (u8, usize) {
    if is_full_size() { (50, 200) } else { (10, 40) }
}

/// The share left for healthy hosts. A small run lasts seconds, in which a stall of the machine may hit one of the
/// two fetches; a bad host that held a worker would leave far less.
fn least() -> f64 {
    if is_full_size() { 0.95 } else { 0.85 }
}

/// Three dead hosts and one that bans.
const BAD: u8 = 4;

/// Requests that a host accepts per second; one more is refused.
struct Limit {
    per_s: usize,
    taken: Mutex<(Instant, usize)>,
}

impl Limit {
    fn accepts(&self) -> bool {
        let mut taken = self.taken.lock().unwrap();
        if taken.0.elapsed() >= Duration::from_secs(1) {
            *taken = (Instant::now(), 0);
        }
        taken.1 += 1;
        taken.1 <= self.per_s
    }
}

/// A healthy host with a limit and a latency of its own; some fail now and then.
async fn healthy(number: u8) -> Host {
    let per_s = if number % 3 == 1 { 15 + usize::from(number % 10) } else { usize::MAX };
    let limit = Limit { per_s, taken: Mutex::new((Instant::now(), 0)) };
    let latency = Duration::from_millis(u64::from(number % 5) * 15 + 5);
    let fails = number % 7 == 3;
    Host::start(number, latency, move |request, count| {
        if fails && count % 40 == 20 {
            return answer(500, &[], "");
        }
        if !limit.accepts() {
            return answer(429, &[], "");
        }
        answer(200, &[], format!("{} of {number}", request.path))
    })
    .await
}

/// The first hangs, the second closes, the third is not there, the fourth bans after five requests.
async fn bad(number: u8) -> Host {
    Host::start(200 + number, Duration::ZERO, move |_, count| match number {
        0 => Reply::Hang,
        1 => Reply::Close,
        _ if count < 5 => answer(200, &[], "for now"),
        _ => answer(429, &[("retry-after", "3600")], ""),
    })
    .await
}

/// Fetches from the healthy hosts, and from the bad ones if they are to be there. URLs per second of a healthy host, in
/// the mean of all.
async fn rate(folder: &Path, healthy_hosts: &[Host], bad_urls: &[String]) -> f64 {
    let (_, each) = size();
    let mut urls = bad_urls.to_vec();
    let good = healthy_hosts.iter().flat_map(|host| (0..each).map(|page| host.url(&format!("/{page}"))));
    urls.extend(good);
    let mut settings = settings(folder);
    // The law as it ships, from a pace at which a test ends.
    settings.governor.key.discovery_interval = Duration::from_millis(100);
    settings.concurrency = 64;
    let (stop, start) = (Stop::default(), Instant::now());
    let (mut fetched, wanted) = (0, healthy_hosts.len() * each);
    // When each host's last URL was there.
    let mut ends: HashMap<String, Duration> = HashMap::new();
    told(&urls, settings, stop.clone(), |line| {
        if bad_urls.binary_search(&line.url).is_ok() {
            return;
        }
        assert!(line.is_fetched(), "every URL of a healthy host is fetched: {line:?}");
        fetched += 1;
        let host = line.url.rsplit_once('/').unwrap().0;
        ends.insert(host.to_owned(), start.elapsed());
        if fetched == wanted {
            stop.stop();
        }
    })
    .await
    .unwrap();
    assert_eq!((fetched, ends.len()), (wanted, healthy_hosts.len()));
    let rates = ends.values().map(|end| each as f64 / end.as_secs_f64());
    rates.sum::<f64>() / ends.len() as f64
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_hosts_cost_the_healthy_ones_at_most_a_twentieth() {
    let (hosts, each) = size();
    let (mut ones, mut others) = (Vec::new(), Vec::new());
    for number in 0..hosts - BAD {
        ones.push(healthy(20 + number).await);
        others.push(healthy(20 + number).await);
    }
    let mut bad_hosts = Vec::new();
    for number in 0..BAD {
        bad_hosts.push(bad(number).await);
    }
    let mut bad_urls: Vec<String> =
        bad_hosts.iter().flat_map(|host| (0..each).map(|page| host.url(&format!("/{page}")))).collect();
    // Nobody listens there any more.
    let gone = bad_hosts.remove(2);
    let dead = gone.address;
    drop(gone);
    assert!(bad_urls.iter().any(|url| url.contains(&dead.to_string())));
    bad_urls.sort_unstable();
    // At the same time: whatever else this machine does, it does to both. The process that ends first removes no files yet, since
    // both listen on one thread.
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (alone, together) = tokio::join!(rate(one.path(), &ones, &[]), rate(other.path(), &others, &bad_urls));
    let ratio = together / alone;
    println!("{hosts} hosts, {each} URLs each: {alone:.2}/s alone, {together:.2}/s with bad hosts, ratio {ratio:.3}");
    assert!(ratio >= least(), "{alone:.2}/s alone, {together:.2}/s with bad hosts");
}
