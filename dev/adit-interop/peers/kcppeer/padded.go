package main

import (
	"io"
	"sync"

	"github.com/xtaci/qpp"
)

// QPP around a stream, where kcptun has it: the pads of the password are shared, and each direction
// of each stream begins anew.
type padded struct {
	stream io.ReadWriter
	reads  *qpp.Rand
	writes *qpp.Rand
}

var shared = sync.OnceValue(func() *qpp.QuantumPermutationPad {
	return qpp.NewQPP([]byte(*key), uint16(*pads))
})

func newPadded(stream io.ReadWriter) *padded {
	seed := []byte(*key)
	return &padded{stream, qpp.CreatePRNG(seed), qpp.CreatePRNG(seed)}
}

func (p *padded) Read(b []byte) (int, error) {
	n, err := p.stream.Read(b)
	shared().DecryptWithPRNG(b[:n], p.reads)
	return n, err
}

func (p *padded) Write(b []byte) (int, error) {
	shared().EncryptWithPRNG(b, p.writes)
	return p.stream.Write(b)
}
