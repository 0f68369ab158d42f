//! The connectors of what a build leaves out.

/// Implements `Connector` for a type without values.
macro_rules! impl_left_out_connector {
    ($name:ident) => {
        impl $crate::connector::Connector for $name {
            fn connect<'a>(
                &'a self,
                _: &'a adit_wire::Target,
                _: &'a [u8],
            ) -> $crate::BoxFuture<
                'a,
                Result<$crate::connector::ConnectedStream, $crate::DialError>,
            > {
                match *self {}
            }

            fn open_datagrams(
                &self,
            ) -> $crate::BoxFuture<'_, Result<$crate::udp::BoxDatagramPath, $crate::DialError>>
            {
                match *self {}
            }
        }
    };
}

pub(crate) use impl_left_out_connector;
