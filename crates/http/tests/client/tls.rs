//! TLS: trusted or not at all, and HTTP/2 where both speak it.

use crate::support::builder;
use gleaner_http::client::{Error, RedirectFault};
use http_body_util::Empty;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// A provider with a certificate that it made itself: its port, and the certificate.
async fn provider() -> (u16, String) {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let mut config = config.with_single_cert(vec![own.cert.der().clone()], key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let server = auto::Builder::new(TokioExecutor::new());
                drop(server.serve_connection(TokioIo::new(stream), service_fn(redirect_on_request)).await);
            });
        }
    });
    (port, own.cert.pem())
}

async fn redirect_on_request(request: Request<Incoming>) -> Result<Response<Empty<Bytes>>, Infallible> {
    let mut response = Response::new(Empty::new());
    if let Some(to) = request.uri().query() {
        *response.status_mut() = hyper::StatusCode::FOUND;
        response.headers_mut().insert("location", to.parse().unwrap());
    }
    Ok(response)
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_ends_the_call_at_the_first_attempt() {
    let (port, _) = provider().await;
    let client = builder("p").build().unwrap();
    let result = client.get(format!("https://localhost:{port}/?token=secret")).send().await;
    let Err(error @ Error::UntrustedCertificate { .. }) = result else { panic!("{result:?}") };
    assert!(error.to_string().starts_with(&format!("https://localhost:{port}/: the certificate is not trusted")));
    let status = client.governor().status();
    assert_eq!((status.sent, status.rejected, status.breaker), (1, 0, "closed"));
}

#[tokio::test]
async fn a_certificate_for_another_host_is_not_trusted_either() {
    let (port, pem) = provider().await;
    let client = builder("p").extra_root_certificate(pem).build().unwrap();
    let result = client.get(format!("https://127.0.0.1:{port}/")).send().await;
    assert!(matches!(result, Err(Error::UntrustedCertificate { .. })), "{result:?}");
}

#[tokio::test]
async fn http_2_is_spoken_where_the_provider_speaks_it() {
    let (port, pem) = provider().await;
    let client = builder("p").extra_root_certificate(pem).build().unwrap();
    let response = client.get(format!("https://localhost:{port}/")).send().await.unwrap();
    assert_eq!((response.status().as_u16(), response.version()), (200, hyper::Version::HTTP_2));
}

#[tokio::test]
async fn encryption_never_turns_into_none() {
    let (port, pem) = provider().await;
    let client = builder("p").extra_root_certificate(pem).allow_private_redirects(true).build().unwrap();
    let result = client.get(format!("https://localhost:{port}/?http://localhost:{port}/")).send().await;
    assert!(matches!(result, Err(Error::Redirect { fault: RedirectFault::Insecure, .. })), "{result:?}");
}

#[test]
fn what_is_no_certificate_is_not_trusted() {
    let result = builder("p").extra_root_certificate("-----BEGIN CERTIFICATE-----\nnope\n").build();
    assert!(matches!(result, Err(Error::Setup { .. })), "{result:?}");
}
