// A peer of the tests on kcp-go, smux and snappy, as they are today.
//
//	kcppeer echo   -l HOST:PORT [options]             raw KCP: sends back what comes
//	kcppeer send   -r HOST:PORT -n BYTES [options]    raw KCP: sends, and compares what comes back
//	kcppeer beside -r HOST:PORT [options]             raw KCP: the same with datagrams beside the stream
//	kcppeer server -l HOST:PORT -t HOST:PORT [options]  the end of a kcptun tunnel at the target
//	kcppeer client -l HOST:PORT -r HOST:PORT [options]  the end of a kcptun tunnel at home
//	kcppeer idle   -r HOST:PORT -n SESSIONS [options]  raw KCP: sessions that say one byte each
//	kcppeer speed  -kind sink|echo -size BYTES -n WRITES [options]  both ends in this process
//	kcppeer steps  [-millis N]  packets, checks and flushes of kcp-go in memory
//	kcppeer fec    [-millis N]  the codes of klauspost/reedsolomon as kcp-go uses them
//
// It prints "ready HOST:PORT" when it can be used, and ends after -life seconds in any case.
package main

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"time"

	"github.com/golang/snappy"
	"github.com/xtaci/kcp-go/v5"
	"github.com/xtaci/smux"
	"golang.org/x/crypto/pbkdf2"
)

var (
	flags   = flag.NewFlagSet("kcppeer", flag.ExitOnError)
	listen  = flags.String("l", "127.0.0.1:0", "where to listen")
	remote  = flags.String("r", "", "the server")
	target  = flags.String("t", "", "where the tunnel leads")
	count   = flags.Int("n", 1<<20, "bytes to send, or sessions")
	key     = flags.String("key", "it's a secrect", "the password")
	crypt   = flags.String("crypt", "aes", "the cipher")
	data    = flags.Int("ds", 10, "data shards")
	parity  = flags.Int("ps", 3, "parity shards")
	message = flags.Bool("message", false, "message mode")
	version = flags.Int("smuxver", 2, "the version of smux")
	nocomp  = flags.Bool("nocomp", false, "without compression")
	pads    = flags.Int("qpp", 0, "pads of QPP, 0 for none")
	dup     = flags.Int("dup", 0, "how many more times a datagram is sent")
	mtu     = flags.Int("mtu", 1350, "bytes of a datagram")
	kind    = flags.String("kind", "sink", "what a measured server does: sink or echo")
	size    = flags.Int("size", 1<<20, "bytes of a measured write")
	millis  = flags.Int("millis", 300, "milliseconds for each measured row")
	life    = flags.Int("life", 120, "seconds until the end")
)

func main() {
	log.SetFlags(0)
	if len(os.Args) < 2 {
		log.Fatal("echo, send, beside, server, client, idle, speed, steps or fec")
	}
	flags.Parse(os.Args[2:])
	time.AfterFunc(time.Duration(*life)*time.Second, func() { log.Fatal("out of time") })
	block, err := cipherOf(*crypt, pbkdf2.Key([]byte(*key), []byte("kcp-go"), 4096, 32, sha1.New))
	check(err)
	switch os.Args[1] {
	case "echo":
		accept(block, func(session *kcp.UDPSession) { echo(session) })
	case "send":
		send(dial(block))
	case "beside":
		beside(dial(block))
	case "server":
		accept(block, func(session *kcp.UDPSession) { serve(session) })
	case "client":
		tunnel(dial(block))
	case "idle":
		idle(block)
	case "speed":
		speed(block)
	case "steps":
		steps()
	case "fec":
		codes()
	default:
		log.Fatal("no such role")
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func cipherOf(name string, key []byte) (kcp.BlockCrypt, error) {
	switch name {
	case "null":
		return nil, nil
	case "none":
		return kcp.NewNoneBlockCrypt(key)
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
	}
	return nil, errors.New("no such cipher")
}

func set(session *kcp.UDPSession) {
	session.SetStreamMode(!*message)
	session.SetWriteDelay(false)
	session.SetNoDelay(1, 10, 2, 1)
	session.SetWindowSize(1024, 1024)
	session.SetMtu(*mtu)
	session.SetDUP(*dup)
}

func dial(block kcp.BlockCrypt) *kcp.UDPSession {
	session, err := kcp.DialWithOptions(*remote, block, *data, *parity)
	check(err)
	set(session)
	return session
}

func accept(block kcp.BlockCrypt, each func(*kcp.UDPSession)) {
	listener, err := kcp.ListenWithOptions(*listen, block, *data, *parity)
	check(err)
	fmt.Println("ready", listener.Addr())
	for {
		session, err := listener.AcceptKCP()
		check(err)
		set(session)
		go each(session)
	}
}

func echo(session *kcp.UDPSession) {
	defer session.Close()
	if *data > 0 {
		check(session.SetOOBHandler(func(datagram []byte) { session.SendOOB(datagram) }))
	}
	buf := make([]byte, 1<<16)
	for {
		n, err := session.Read(buf)
		if err != nil {
			return
		}
		if _, err := session.Write(buf[:n]); err != nil {
			return
		}
	}
}

func pattern(n int) []byte {
	bytes, state := make([]byte, n), uint32(7)
	for i := range bytes {
		state = state*1664525 + 1013904223
		bytes[i] = byte(state >> 24)
	}
	return bytes
}

// Stream mode: all at once. Message mode: messages of growing length, each of which must come back
// as it is.
func send(session *kcp.UDPSession) {
	session.SetDeadline(time.Now().Add(time.Duration(*life) * time.Second))
	if !*message {
		sent, got := pattern(*count), make([]byte, *count)
		go func() {
			_, err := session.Write(sent)
			check(err)
		}()
		_, err := io.ReadFull(session, got)
		check(err)
		if !bytes.Equal(sent, got) {
			log.Fatal("other bytes came back")
		}
		fmt.Println("same")
		return
	}
	buf, total := make([]byte, 1<<16), 0
	for n := 1; total < *count; n += n/3 + 1 {
		// A longer write would be several messages.
		if n > 1250 {
			n = 1
		}
		sent := pattern(n)
		_, err := session.Write(sent)
		check(err)
		m, err := session.Read(buf)
		check(err)
		if !bytes.Equal(sent, buf[:m]) {
			log.Fatalf("of a message of %d bytes %d others came back", n, m)
		}
		total += n
	}
	fmt.Println("same")
}

// Datagrams of every length, after a byte in the stream: each is sent until it comes back.
func beside(session *kcp.UDPSession) {
	back := make(chan []byte, 64)
	check(session.SetOOBHandler(func(datagram []byte) {
		select {
		case back <- append([]byte{}, datagram...):
		default:
		}
	}))
	session.SetDeadline(time.Now().Add(time.Duration(*life) * time.Second))
	_, err := session.Write([]byte{1})
	check(err)
	_, err = io.ReadFull(session, make([]byte, 1))
	check(err)
	for n := 0; n <= session.GetOOBMaxSize(); n += 1 + n/2 {
		sent := pattern(n)
		for came := false; !came; {
			check(session.SendOOB(sent))
			select {
			case got := <-back:
				came = bytes.Equal(got, sent)
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	fmt.Println("same")
}

func idle(block kcp.BlockCrypt) {
	sessions := make([]*kcp.UDPSession, *count)
	for i := range sessions {
		sessions[i] = dial(block)
		sessions[i].Write([]byte{1})
		if i%64 == 63 {
			time.Sleep(300 * time.Millisecond)
		}
	}
	fmt.Println("ready", *remote)
	select {}
}

// Every write leaves as one block.
type packed struct {
	net.Conn
	reader *snappy.Reader
	writer *snappy.Writer
}

func (p *packed) Read(b []byte) (int, error) { return p.reader.Read(b) }

func (p *packed) Write(b []byte) (int, error) {
	if _, err := p.writer.Write(b); err != nil {
		return 0, err
	}
	return len(b), p.writer.Flush()
}

func below(session *kcp.UDPSession) net.Conn {
	if *nocomp {
		return session
	}
	return &packed{session, snappy.NewReader(session), snappy.NewBufferedWriter(session)}
}

func config() *smux.Config {
	config := smux.DefaultConfig()
	config.Version = *version
	config.MaxFrameSize = 8192
	config.MaxReceiveBuffer = 4 << 20
	config.MaxStreamBuffer = 2 << 20
	return config
}

func serve(session *kcp.UDPSession) {
	mux, err := smux.Server(below(session), config())
	check(err)
	defer mux.Close()
	for {
		stream, err := mux.AcceptStream()
		if err != nil {
			log.Println(err)
			return
		}
		go func() {
			conn, err := net.Dial("tcp", *target)
			if err != nil {
				stream.Close()
				return
			}
			join(conn, stream)
		}()
	}
}

func tunnel(session *kcp.UDPSession) {
	mux, err := smux.Client(below(session), config())
	check(err)
	listener, err := net.Listen("tcp", *listen)
	check(err)
	fmt.Println("ready", listener.Addr())
	for {
		conn, err := listener.Accept()
		check(err)
		stream, err := mux.OpenStream()
		check(err)
		go join(conn, stream)
	}
}

// Both ways until both have come to their end.
func join(conn net.Conn, stream *smux.Stream) {
	done := make(chan struct{})
	var far io.ReadWriter = stream
	if *pads > 0 {
		far = newPadded(stream)
	}
	go func() {
		io.Copy(far, conn)
		stream.CloseWrite()
		close(done)
	}()
	io.Copy(conn, far)
	conn.(*net.TCPConn).CloseWrite()
	<-done
	conn.Close()
	stream.Close()
}
