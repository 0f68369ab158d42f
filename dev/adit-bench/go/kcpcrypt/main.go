// Prints how fast kcp-go encrypts and decrypts packets of 1,500 bytes, in MB/s (10^6 bytes a
// second), for comparison with adit's: `cargo run --release -p adit-crypto --example packet_speed`.
//
//	go run . [NAME…]
//
// Both directions count. `cipher` is kcp-go's BlockCrypt (or AEAD) alone; `packet` puts 16 bytes of
// a nonce and the CRC-32 in front as kcp-go's sessions do, and checks it afterwards. Each figure is
// the best of 12 batches by the thread's CPU time.
package main

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"runtime"
	"slices"
	"syscall"
	"unsafe"

	"github.com/xtaci/kcp-go/v5"
)

const (
	packet  = 1500
	nonce   = 16
	batches = 12
	batchNs = 4e6
)

var names = []string{
	"aes", "aes-128", "aes-192", "aes-128-gcm", "salsa20", "blowfish", "twofish", "cast5", "3des",
	"tea", "xtea", "xor", "sm4", "none",
}

func crypt(name string, key []byte) (kcp.BlockCrypt, error) {
	switch name {
	case "aes":
		return kcp.NewAESBlockCrypt(key)
	case "aes-128":
		return kcp.NewAESBlockCrypt(key[:16])
	case "aes-192":
		return kcp.NewAESBlockCrypt(key[:24])
	case "aes-128-gcm":
		return kcp.NewAESGCMCrypt(key[:16])
	case "salsa20":
		return kcp.NewSalsa20BlockCrypt(key)
	case "blowfish":
		return kcp.NewBlowfishBlockCrypt(key)
	case "twofish":
		return kcp.NewTwofishBlockCrypt(key)
	case "cast5":
		return kcp.NewCast5BlockCrypt(key[:16])
	case "3des":
		return kcp.NewTripleDESBlockCrypt(key[:24])
	case "tea":
		return kcp.NewTEABlockCrypt(key[:16])
	case "xtea":
		return kcp.NewXTEABlockCrypt(key[:16])
	case "xor":
		return kcp.NewSimpleXORBlockCrypt(key)
	case "sm4":
		return kcp.NewSM4BlockCrypt(key[:16])
	case "none":
		return kcp.NewNoneBlockCrypt(key)
	}
	return nil, fmt.Errorf("%s: no such cipher", name)
}

func main() {
	runtime.LockOSThread()
	wanted := os.Args[1:]
	if len(wanted) == 0 {
		wanted = names
	}
	key := make([]byte, 32)
	for i := range key {
		key[i] = byte(0x42 + 7*i)
	}
	fmt.Printf("%-12s %9s %9s\n", "", "cipher", "packet")
	for _, name := range wanted {
		block, err := crypt(name, key)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		report(name, block)
	}
	data := make([]byte, 1024)
	fmt.Printf("crc32 of 1 KiB: %.1f ns\n", best(func() { sum = crc32.ChecksumIEEE(data) }))
}

var sum uint32

func report(name string, block kcp.BlockCrypt) {
	data := make([]byte, packet)
	state := uint64(1)
	fill := func(out []byte) {
		for i := 0; i+4 <= len(out); i += 4 {
			state += 0x9e3779b97f4a7c15
			binary.LittleEndian.PutUint32(out[i:], uint32(state>>32))
		}
	}
	if aead, ok := block.(interface {
		NonceSize() int
		Overhead() int
		Seal(dst, nonce, plaintext, additionalData []byte) []byte
		Open(dst, nonce, ciphertext, additionalData []byte) ([]byte, error)
	}); ok {
		n := aead.NonceSize()
		ns := best(func() {
			fill(data[:n])
			aead.Seal(data[n:n], data[:n], data[n:packet-aead.Overhead()], nil)
			if _, err := aead.Open(data[n:n], data[:n], data[n:], nil); err != nil {
				panic(err)
			}
		})
		fmt.Printf("%-12s %9s %9.0f\n", name, "", rate(ns))
		return
	}
	cipher := best(func() {
		block.Encrypt(data, data)
		block.Decrypt(data, data)
	})
	whole := best(func() {
		fill(data[:nonce])
		binary.LittleEndian.PutUint32(data[nonce:], crc32.ChecksumIEEE(data[nonce+4:]))
		block.Encrypt(data, data)
		block.Decrypt(data, data)
		if binary.LittleEndian.Uint32(data[nonce:]) != crc32.ChecksumIEEE(data[nonce+4:]) {
			panic("the packet did not come back")
		}
	})
	fmt.Printf("%-12s %9.0f %9.0f\n", name, rate(cipher), rate(whole))
}

func rate(ns float64) float64 {
	return 2 * packet / ns * 1e3
}

// Nanoseconds of one call, the best of all batches.
func best(call func()) float64 {
	batch := func(count int) float64 {
		start := cpuNs()
		for range count {
			call()
		}
		return (cpuNs() - start) / float64(count)
	}
	rough := min(batch(1), batch(4))
	count := int(max(1, min(1e6, batchNs/rough)))
	results := make([]float64, batches)
	for i := range results {
		results[i] = batch(count)
	}
	return slices.Min(results)
}

// The time that this thread has had on a processor.
func cpuNs() float64 {
	const threadCPUTime = 3
	var now syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, threadCPUTime, uintptr(unsafe.Pointer(&now)), 0); errno != 0 {
		panic(errno)
	}
	return float64(now.Nano())
}
