//! Decodes `Content-Encoding`, piece by piece.
//!
//! Why not reqwest's own: it shows decoded bytes only, and detecting a decompression bomb needs both sizes. Never
//! reads ahead more than one piece, so a bomb costs a buffer and not the machine's memory.

use super::body::BodyFault;
use crate::headers::has;
use async_compression::tokio::bufread::{BrotliDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder};
use async_compression::zstd::DParameter;
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use tokio::io::{AsyncBufRead, AsyncRead, BufReader};

/// `Accept-Encoding` unless the caller sets it: all of these are decoded here.
pub const ACCEPTED: &str = "gzip, br, zstd";

/// A body, decoded or not.
pub(crate) type Reader = Box<dyn AsyncRead + Send + Sync + Unpin>;

/// One way of encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

/// Maximum of nested encodings. Two happen when a proxy compresses again; more are an attack on the decoder.
pub(crate) const CODINGS_MAX: usize = 2;

/// The largest window of zstd data: 8 MiB, the maximum for HTTP (RFC 9659). Otherwise a body could demand 128 MiB of
/// memory.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// The encodings of a body, in order of application.
pub(crate) fn codings(headers: &HeaderMap) -> Result<Vec<Coding>, BodyFault> {
    let mut found = Vec::new();
    if !has(headers, &CONTENT_ENCODING) {
        return Ok(found);
    }
    for value in headers.get_all(CONTENT_ENCODING) {
        for name in value.as_bytes().split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
            let coding = match name.to_ascii_lowercase().as_slice() {
                b"" | b"identity" => continue,
                b"gzip" | b"x-gzip" => Coding::Gzip,
                b"deflate" => Coding::Deflate,
                b"br" => Coding::Brotli,
                b"zstd" => Coding::Zstd,
                _ => return Err(BodyFault::UnknownCoding),
            };
            if found.len() == CODINGS_MAX {
                return Err(BodyFault::TooManyCodings(CODINGS_MAX));
            }
            found.push(coding);
        }
    }
    Ok(found)
}

/// Decodes `encoded`; there is at least one encoding.
pub(crate) fn decoded(encoded: impl AsyncBufRead + Send + Sync + Unpin + 'static, codings: &[Coding]) -> Reader {
    let mut outermost_first = codings.iter().rev();
    let first = outermost_first.next().copied();
    let reader: Reader = match first {
        Some(coding) => without(coding, encoded),
        None => Box::new(encoded),
    };
    outermost_first.fold(reader, |reader, &coding| without(coding, BufReader::new(reader)))
}

/// Consecutive members are one body: then the end of the data is also the end of the message, and missing or surplus
/// data is detected.
fn without(coding: Coding, encoded: impl AsyncBufRead + Send + Sync + Unpin + 'static) -> Reader {
    macro_rules! all_members {
        ($decoder:expr) => {{
            let mut decoder = $decoder;
            decoder.multiple_members(true);
            Box::new(decoder)
        }};
    }
    match coding {
        Coding::Gzip => all_members!(GzipDecoder::new(encoded)),
        Coding::Deflate => all_members!(ZlibDecoder::new(encoded)),
        Coding::Brotli => all_members!(BrotliDecoder::new(encoded)),
        Coding::Zstd => {
            all_members!(ZstdDecoder::with_params(encoded, &[DParameter::window_log_max(ZSTD_WINDOW_LOG_MAX)]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn read(values: &[&'static str]) -> Result<Vec<Coding>, BodyFault> {
        let values = values.iter().map(|value| (CONTENT_ENCODING, HeaderValue::from_static(value)));
        codings(&HeaderMap::from_iter(values))
    }

    #[test]
    fn codings_are_read_in_order_and_at_most_two() {
        assert_eq!(read(&[]), Ok(vec![]));
        assert_eq!(read(&["identity, "]), Ok(vec![]));
        assert_eq!(read(&["GZIP"]), Ok(vec![Coding::Gzip]));
        assert_eq!(read(&["gzip, br"]), Ok(vec![Coding::Gzip, Coding::Brotli]));
        assert_eq!(read(&["deflate", " zstd "]), Ok(vec![Coding::Deflate, Coding::Zstd]));
        assert_eq!(read(&["gzip, gzip, gzip"]), Err(BodyFault::TooManyCodings(2)));
        assert_eq!(read(&["aes128gcm"]), Err(BodyFault::UnknownCoding));
        assert_eq!(read(&["gzip, compress"]), Err(BodyFault::UnknownCoding));
    }
}
