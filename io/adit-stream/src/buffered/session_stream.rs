//! Named stream types for protocol crates.

/// Declares a stream of a session and its two halves as named types, so that the protocol's crate
/// can add methods.
///
/// Each wraps a [`Buffered`](crate::Buffered) of `$raw` that only the declaring module can access,
/// and implements `Stream` (the stream alone), tokio's `AsyncRead` and `AsyncWrite`. The stream has
/// `into_split`.
#[macro_export]
macro_rules! session_stream {
    (
        raw: $raw:ty;
        $(#[$on_stream:meta])* $stream:ident;
        $(#[$on_reader:meta])* $reader:ident;
        $(#[$on_writer:meta])* $writer:ident;
    ) => {
        $(#[$on_stream])*
        #[derive(Debug)]
        pub struct $stream($crate::Buffered<$raw>);

        $(#[$on_reader])*
        #[derive(Debug)]
        pub struct $reader($crate::Buffered<$raw>);

        $(#[$on_writer])*
        #[derive(Debug)]
        pub struct $writer($crate::Buffered<$raw>);

        impl $stream {
            /// Splits the stream into two halves for two tasks. The stream is closed when both are
            /// dropped.
            #[must_use]
            pub fn into_split(self) -> ($reader, $writer) {
                let (reader, writer) = self.0.into_split();
                ($reader(reader), $writer(writer))
            }
        }

        impl $crate::Stream for $stream {
            #[inline]
            fn poll_fill(
                &mut self,
                cx: &mut ::core::task::Context<'_>,
                want: usize,
            ) -> ::core::task::Poll<::std::io::Result<usize>> {
                self.0.poll_fill(cx, want)
            }

            #[inline]
            fn filled(&mut self) -> &mut [u8] {
                self.0.filled()
            }

            #[inline]
            fn runs<'a>(&'a mut self, out: &mut [::std::io::IoSlice<'a>]) -> usize {
                self.0.runs(out)
            }

            #[inline]
            fn consume(&mut self, n: usize) {
                self.0.consume(n);
            }

            #[inline]
            fn poll_slot(
                &mut self,
                cx: &mut ::core::task::Context<'_>,
                min: usize,
            ) -> ::core::task::Poll<::std::io::Result<usize>> {
                self.0.poll_slot(cx, min)
            }

            #[inline]
            fn slot(&mut self) -> &mut [u8] {
                self.0.slot()
            }

            #[inline]
            fn commit(&mut self, n: usize) -> ::std::io::Result<()> {
                self.0.commit(n)
            }

            #[inline]
            fn poll_flush(
                &mut self,
                cx: &mut ::core::task::Context<'_>,
            ) -> ::core::task::Poll<::std::io::Result<()>> {
                $crate::Stream::poll_flush(&mut self.0, cx)
            }

            #[inline]
            fn poll_finish(
                &mut self,
                cx: &mut ::core::task::Context<'_>,
            ) -> ::core::task::Poll<::std::io::Result<()>> {
                self.0.poll_finish(cx)
            }

            #[inline]
            fn abort(&mut self) {
                self.0.abort();
            }

            #[inline]
            fn lane(&self) -> $crate::lane::RelayLane {
                self.0.lane()
            }
        }

        $crate::session_stream!(@read $stream $reader);
        $crate::session_stream!(@write $stream $writer);
    };
    (@read $($name:ident)*) => { $(
        impl ::tokio::io::AsyncRead for $name {
            #[inline]
            fn poll_read(
                mut self: ::core::pin::Pin<&mut Self>,
                cx: &mut ::core::task::Context<'_>,
                out: &mut ::tokio::io::ReadBuf<'_>,
            ) -> ::core::task::Poll<::std::io::Result<()>> {
                ::core::pin::Pin::new(&mut self.0).poll_read(cx, out)
            }
        }
    )* };
    (@write $($name:ident)*) => { $(
        impl ::tokio::io::AsyncWrite for $name {
            #[inline]
            fn poll_write(
                mut self: ::core::pin::Pin<&mut Self>,
                cx: &mut ::core::task::Context<'_>,
                bytes: &[u8],
            ) -> ::core::task::Poll<::std::io::Result<usize>> {
                ::core::pin::Pin::new(&mut self.0).poll_write(cx, bytes)
            }

            #[inline]
            fn poll_write_vectored(
                mut self: ::core::pin::Pin<&mut Self>,
                cx: &mut ::core::task::Context<'_>,
                bufs: &[::std::io::IoSlice<'_>],
            ) -> ::core::task::Poll<::std::io::Result<usize>> {
                ::core::pin::Pin::new(&mut self.0).poll_write_vectored(cx, bufs)
            }

            #[inline]
            fn is_write_vectored(&self) -> bool {
                ::tokio::io::AsyncWrite::is_write_vectored(&self.0)
            }

            #[inline]
            fn poll_flush(
                mut self: ::core::pin::Pin<&mut Self>,
                cx: &mut ::core::task::Context<'_>,
            ) -> ::core::task::Poll<::std::io::Result<()>> {
                ::tokio::io::AsyncWrite::poll_flush(::core::pin::Pin::new(&mut self.0), cx)
            }

            #[inline]
            fn poll_shutdown(
                mut self: ::core::pin::Pin<&mut Self>,
                cx: &mut ::core::task::Context<'_>,
            ) -> ::core::task::Poll<::std::io::Result<()>> {
                ::tokio::io::AsyncWrite::poll_shutdown(::core::pin::Pin::new(&mut self.0), cx)
            }
        }
    )* };
}
