//! A socket whose other end must go on reading.
//!
//! Whoever asks and does not read holds memory and a place. What has been written and not taken for too long ends the
//! connection; a quiet one, to which nothing is to be written, does not.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// How long the other end may take nothing. A laptop that sleeps is gone by then, and comes back by itself.
const STALL_MAX: Duration = Duration::from_secs(20);

/// The socket.
#[derive(Debug)]
pub(crate) struct Patient {
    socket: TcpStream,
    /// Runs while something waits to be taken.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    pub(crate) fn new(socket: TcpStream) -> Self {
        Self { socket, stalled: None }
    }

    fn judge<T>(&mut self, written: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(STALL_MAX)));
        match stalled.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Patient {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_read(context, into)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.socket).poll_write(context, bytes);
        this.judge(written, context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.socket).poll_write_vectored(context, bytes);
        this.judge(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.socket).poll_flush(context);
        this.judge(flushed, context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let shut = Pin::new(&mut this.socket).poll_shutdown(context);
        this.judge(shut, context)
    }
}
