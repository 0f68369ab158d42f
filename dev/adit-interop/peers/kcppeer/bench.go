package main

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"runtime"
	"syscall"
	"time"
	_ "unsafe"

	"github.com/klauspost/reedsolomon"
	"github.com/minio/highwayhash"
	"github.com/xtaci/kcp-go/v5"
)

const (
	warmUp    = 2 << 20
	packetLen = 1400
	nonceLen  = 16
)

// Bytes from one end to the other, or there and back, both in this process. Prints what all of it
// cost: the process's processor time, and allocations.
func speed(block kcp.BlockCrypt) {
	listener, err := kcp.ListenWithOptions("127.0.0.1:0", block, *data, *parity)
	check(err)
	enlarge(listener)
	arrived := make(chan int, 1<<16)
	go func() {
		session, err := listener.AcceptKCP()
		check(err)
		set(session)
		buf := make([]byte, 1<<19)
		for {
			n, err := session.Read(buf)
			check(err)
			if *kind == "sink" {
				arrived <- n
			} else if _, err := session.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	*remote = listener.Addr().String()
	session := dial(block)
	enlarge(session)
	if *kind == "echo" {
		go func() {
			buf := make([]byte, 1<<19)
			for {
				n, err := session.Read(buf)
				check(err)
				arrived <- n
			}
		}()
	}
	carry := func(writes int) {
		go func() {
			buf := make([]byte, *size)
			for range writes {
				_, err := session.Write(buf)
				check(err)
			}
		}()
		for left := writes * *size; left > 0; {
			left -= <-arrived
		}
	}
	carry(warmUp / *size + 1)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, start := cpuNs(), time.Now()
	carry(*count)
	spent, wall := cpuNs()-cpu, time.Since(start)
	runtime.ReadMemStats(&after)
	fmt.Printf(`{"bytes":%d,"writes":%d,"cpu_ns":%d,"wall_ns":%d,"allocations":%d}`+"\n",
		*count**size, *count, spent, wall.Nanoseconds(), after.Mallocs-before.Mallocs)
}

func enlarge(end interface {
	SetReadBuffer(int) error
	SetWriteBuffer(int) error
}) {
	end.SetReadBuffer(16 << 20)
	end.SetWriteBuffer(16 << 20)
}

func cpuNs() int64 {
	var used syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return used.Utime.Nano() + used.Stime.Nano()
}

func row(name string, bytes int, ns float64) {
	fmt.Printf(`{"name":"%s","bytes":%d,"ns_per_op":%.2f}`+"\n", name, bytes, ns)
}

// Nanoseconds of one of the count operations of work, for which prepare makes everything ready; the
// fastest of as many rounds as there is time for.
func apart(count int, prepare, work func()) float64 {
	best, start := math.Inf(1), time.Now()
	for rounds := 0; rounds < 4 || time.Since(start) < time.Duration(*millis)*time.Millisecond; rounds++ {
		prepare()
		begun := time.Now()
		work()
		if took := float64(time.Since(begun).Nanoseconds()); rounds > 0 {
			best = min(best, took)
		}
	}
	return best / float64(count)
}

// The same of an operation that can be done over and over.
func again(work func()) float64 {
	const count = 256
	return apart(count, func() {}, func() {
		for range count {
			work()
		}
	})
}

func steps() {
	runtime.LockOSThread()
	row("flush-1023-in-flight", 0, flushing())
	key := make([]byte, 32)
	for i := range key {
		key[i] = byte(0x42 + 7*i)
	}
	for _, name := range []string{
		"aes", "aes-128", "aes-192", "aes-128-gcm", "salsa20", "blowfish", "twofish", "cast5", "3des",
		"tea", "xtea", "xor", "sm4", "none",
	} {
		block, err := cipherOf(name, key)
		check(err)
		sealing(name, block)
	}
	packet := make([]byte, packetLen)
	row("crc32", packetLen, again(func() { sum += crc32.ChecksumIEEE(packet[nonceLen+4:]) }))
	row("highwayhash", packetLen, again(func() { wide += highwayhash.Sum64(packet[nonceLen+8:], key) }))
	entropy := kcp.NewEntropy()
	nonce := make([]byte, nonceLen)
	row("nonce", nonceLen, again(func() { io.ReadFull(entropy, nonce) }))
}

var (
	sum  uint32
	wide uint64
)

// As kcp-go's sessions do it, in place: a nonce of its generator, the check, the cipher.
func sealing(name string, block kcp.BlockCrypt) {
	const many = 64
	entropy := kcp.NewEntropy()
	packets := make([][]byte, many)
	for i := range packets {
		packets[i] = make([]byte, packetLen)
	}
	var seal, open func(packet []byte)
	if aead, ok := block.(interface {
		NonceSize() int
		Overhead() int
		Seal(dst, nonce, plaintext, additionalData []byte) []byte
		Open(dst, nonce, ciphertext, additionalData []byte) ([]byte, error)
	}); ok {
		n := aead.NonceSize()
		seal = func(packet []byte) {
			io.ReadFull(entropy, packet[:n])
			aead.Seal(packet[n:n], packet[:n], packet[n:packetLen-aead.Overhead()], nil)
		}
		open = func(packet []byte) {
			_, err := aead.Open(packet[n:n], packet[:n], packet[n:], nil)
			check(err)
		}
	} else {
		seal = func(packet []byte) {
			io.ReadFull(entropy, packet[:nonceLen])
			binary.LittleEndian.PutUint32(packet[nonceLen:], crc32.ChecksumIEEE(packet[nonceLen+4:]))
			block.Encrypt(packet, packet)
		}
		open = func(packet []byte) {
			block.Decrypt(packet, packet)
			if binary.LittleEndian.Uint32(packet[nonceLen:]) != crc32.ChecksumIEEE(packet[nonceLen+4:]) {
				panic("the packet did not come back")
			}
		}
	}
	each := func(step func([]byte)) func() {
		return func() {
			for _, packet := range packets {
				step(packet)
			}
		}
	}
	row("seal-"+name, packetLen, apart(many, func() {}, each(seal)))
	row("open-"+name, packetLen, apart(many, each(seal), each(open)))
}

//go:linkname flush github.com/xtaci/kcp-go/v5.(*KCP).flush
func flush(session *kcp.KCP, kind kcp.FlushType) uint32

// A flush that finds 1,023 segments in flight, and nothing due.
func flushing() float64 {
	sent := 0
	session := kcp.NewKCP(7, func([]byte, int) { sent++ })
	session.NoDelay(1, 10, 2, 1)
	session.WndSize(1024, 1024)
	window := make([]byte, 24)
	binary.LittleEndian.PutUint32(window, 7)
	window[4] = 84
	binary.LittleEndian.PutUint16(window[6:], 1024)
	if session.Input(window, kcp.IKCP_PACKET_REGULAR, false) != 0 {
		panic("a window was not taken")
	}
	for range 1023 {
		session.Send(make([]byte, 1376))
	}
	flush(session, kcp.IKCP_FLUSH_FULL)
	before := sent
	// Shorter than any time-out.
	best := math.Inf(1)
	for range 64 {
		begun := time.Now()
		flush(session, kcp.IKCP_FLUSH_FULL)
		best = min(best, float64(time.Since(begun).Nanoseconds()))
	}
	if before < 1023 || sent != before {
		panic("something was due")
	}
	return best
}

// One group of each shape; all figures are for one of its datagrams.
func codes() {
	runtime.LockOSThread()
	for _, matrix := range []string{"vandermonde", "cauchy"} {
		for _, shape := range [][2]int{{10, 3}, {3, 1}, {20, 10}} {
			n, m := shape[0], shape[1]
			var options []reedsolomon.Option
			if matrix == "cauchy" {
				options = append(options, reedsolomon.WithCauchyMatrix())
			}
			code, err := reedsolomon.New(n, m, options...)
			check(err)
			shards := make([][]byte, n+m)
			for i := range shards {
				shards[i] = pattern(packetLen)
			}
			name := fmt.Sprintf("%s-%d+%d", matrix, n, m)
			encode := again(func() { check(code.Encode(shards)) })
			row("code-encode-"+name, packetLen, encode/float64(n))
			for _, lost := range []int{1, 3} {
				if lost > m {
					continue
				}
				left := make([][]byte, n+m)
				decode := again(func() {
					copy(left, shards)
					// With room for what comes back, as kcp-go gives it.
					for i := range lost {
						left[i] = shards[i][:0]
					}
					check(code.ReconstructData(left))
				})
				row(fmt.Sprintf("code-decode-%d-%s", lost, name), packetLen, decode/float64(n))
			}
		}
	}
}
