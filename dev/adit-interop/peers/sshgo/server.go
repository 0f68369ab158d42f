package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/exec"

	"golang.org/x/crypto/ssh"
)

// A host key that says when it signs, which it does once for every key exchange.
type counted struct{ ssh.AlgorithmSigner }

func (c counted) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	fmt.Println("keys")
	return c.AlgorithmSigner.SignWithAlgorithm(rand, data, algorithm)
}

func (c counted) Sign(rand io.Reader, data []byte) (*ssh.Signature, error) {
	return c.SignWithAlgorithm(rand, data, "")
}

func serve(all words) {
	lines, err := os.ReadFile(all.options["authorized-keys"])
	check(err)
	allowed, _, _, _, err := ssh.ParseAuthorizedKey(lines)
	check(err)
	config := &ssh.ServerConfig{
		Config: job{options: all.options}.config(),
		PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if bytes.Equal(key.Marshal(), allowed.Marshal()) {
				return nil, nil
			}
			return nil, errors.New("another key")
		},
	}
	config.AddHostKey(counted{signer(all.options["host-key"]).(ssh.AlgorithmSigner)})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	fmt.Println("ready", listener.Addr())
	for {
		connection, err := listener.Accept()
		check(err)
		go attend(connection, config)
	}
}

func attend(connection net.Conn, config *ssh.ServerConfig) {
	server, channels, requests, err := ssh.NewServerConn(connection, config)
	if err != nil {
		log.Println(err)
		return
	}
	go answer(server, requests, make(chan struct{}, 1))
	for opening := range channels {
		switch opening.ChannelType() {
		case "session":
			channel, requests, err := opening.Accept()
			if err == nil {
				go session(channel, requests)
			}
		case "direct-tcpip":
			go connect(opening)
		default:
			enter(opening)
		}
	}
}

func session(channel ssh.Channel, requests <-chan *ssh.Request) {
	environment := os.Environ()
	for request := range requests {
		var variable struct{ Name, Value string }
		var pty struct {
			Term                         string
			Columns, Rows, Width, Height uint32
			Modes                        string
		}
		var program struct{ Line string }
		taken := true
		switch request.Type {
		case "env":
			taken = ssh.Unmarshal(request.Payload, &variable) == nil
			environment = append(environment, variable.Name+"="+variable.Value)
		case "pty-req":
			taken = ssh.Unmarshal(request.Payload, &pty) == nil
			size := fmt.Sprintf("SIZE=%d %d", pty.Rows, pty.Columns)
			environment = append(environment, "TERM="+pty.Term, size)
		case "exec":
			taken = ssh.Unmarshal(request.Payload, &program) == nil
			if taken {
				go run(channel, program.Line, environment)
			}
		default:
			taken = false
		}
		if request.WantReply {
			request.Reply(taken, nil)
		}
	}
}

func run(channel ssh.Channel, line string, environment []string) {
	command := exec.Command("sh", "-c", line)
	command.Env = environment
	command.Stdout, command.Stderr = channel, channel.Stderr()
	input, err := command.StdinPipe()
	check(err)
	check(command.Start())
	go func() {
		io.Copy(input, channel)
		input.Close()
	}()
	command.Wait()
	channel.CloseWrite()
	status := struct{ Status uint32 }{uint32(command.ProcessState.ExitCode())}
	channel.SendRequest("exit-status", false, ssh.Marshal(&status))
	channel.Close()
}

func connect(opening ssh.NewChannel) {
	var to struct {
		Host     string
		Port     uint32
		From     string
		FromPort uint32
	}
	if err := ssh.Unmarshal(opening.ExtraData(), &to); err != nil {
		opening.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	host := net.JoinHostPort(to.Host, fmt.Sprint(to.Port))
	far, err := net.Dial("tcp", host)
	if err != nil {
		opening.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	channel, requests, err := opening.Accept()
	if err != nil {
		far.Close()
		return
	}
	go ssh.DiscardRequests(requests)
	done := make(chan struct{})
	go func() {
		io.Copy(far, channel)
		far.(*net.TCPConn).CloseWrite()
		close(done)
	}()
	io.Copy(channel, far)
	channel.CloseWrite()
	<-done
	channel.Close()
	far.Close()
}
