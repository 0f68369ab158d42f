//! HTTP proxying by CONNECT and absolute-form, sans-IO.
