//go:build tools

// Package tools pins mihomo, which checks documents of Clash in the tests.
package tools

import _ "github.com/metacubex/mihomo"
