//! What the runtime says to a guard: bytes for the connector's input, and three orders.
//!
//! A tag, a length, the bytes. Both ends are this program, started from the same file, so there is no
//! version. A frame that makes no sense is an error, and the guard then treats the runtime as gone.

use std::io::{self, Read, Write};

/// One thing said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// Bytes for the connector.
    Input(Vec<u8>),
    /// Nothing more comes.
    CloseInput,
    /// Ask the connector's group to end.
    Stop,
    /// End everything that came out of the connector.
    Kill,
}

/// The longest frame: a message to a connector is a page of gaps at most, and START with a grant.
const FRAME_BYTES_MAX: u32 = 64 * 1024 * 1024;

impl Frame {
    const fn tag(&self) -> u8 {
        match self {
            Self::Input(_) => b'I',
            Self::CloseInput => b'C',
            Self::Stop => b'T',
            Self::Kill => b'K',
        }
    }
}

pub(crate) fn write_frame(out: &mut impl Write, frame: &Frame) -> io::Result<()> {
    let bytes: &[u8] = if let Frame::Input(bytes) = frame { bytes } else { &[] };
    let length = u32::try_from(bytes.len()).ok().filter(|&length| length <= FRAME_BYTES_MAX);
    let length = length.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a frame is too long"))?;
    // One write: orders must not be cut by a neighbour's.
    let mut whole = Vec::with_capacity(bytes.len() + 5);
    whole.push(frame.tag());
    whole.extend_from_slice(&length.to_le_bytes());
    whole.extend_from_slice(bytes);
    out.write_all(&whole)?;
    out.flush()
}

/// The next frame; `None` when the other end is gone.
pub(crate) fn read_frame(input: &mut impl Read) -> io::Result<Option<Frame>> {
    let mut head = [0; 5];
    match input.read_exact(&mut head) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
    match head[0] {
        b'I' if length <= FRAME_BYTES_MAX => {
            let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
            input.read_exact(&mut bytes)?;
            Ok(Some(Frame::Input(bytes)))
        }
        b'C' => Ok(Some(Frame::CloseInput)),
        b'T' => Ok(Some(Frame::Stop)),
        b'K' => Ok(Some(Frame::Kill)),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "not a frame")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_arrive_as_they_were_sent() {
        let mut pipe = Vec::new();
        for frame in
            [Frame::Input(b"{}\n".to_vec()), Frame::Stop, Frame::Input(Vec::new()), Frame::Kill, Frame::CloseInput]
        {
            write_frame(&mut pipe, &frame).unwrap();
        }
        let mut pipe = &pipe[..];
        let mut next = || read_frame(&mut pipe).unwrap();
        assert_eq!(next(), Some(Frame::Input(b"{}\n".to_vec())));
        assert_eq!(next(), Some(Frame::Stop));
        assert_eq!(next(), Some(Frame::Input(Vec::new())));
        assert_eq!(next(), Some(Frame::Kill));
        assert_eq!(next(), Some(Frame::CloseInput));
        assert_eq!(next(), None);
    }

    #[test]
    fn what_is_cut_or_makes_no_sense_is_no_frame() {
        assert!(read_frame(&mut &b"X\0\0\0\0"[..]).is_err());
        assert!(read_frame(&mut &b"I\xff\xff\xff\xff"[..]).is_err());
        assert!(read_frame(&mut &b"I\x05\0\0\0abc"[..]).is_err());
        assert_eq!(read_frame(&mut &b"I\x05"[..]).unwrap(), None);
    }
}
