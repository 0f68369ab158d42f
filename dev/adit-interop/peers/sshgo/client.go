package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net"

	"golang.org/x/crypto/ssh"
)

// What a job says of a terminal and a variable, and what the server's program makes of it.
const (
	term, columns, rows = "xterm-peer", 97, 31
	variable, value     = "LC_PEER", "one two"
)

func work(all words) {
	key := signer(all.options["key"])
	for _, one := range all.jobs {
		config := &ssh.ClientConfig{
			Config:          one.config(),
			User:            all.options["user"],
			Auth:            []ssh.AuthMethod{ssh.PublicKeys(key)},
			HostKeyCallback: ssh.InsecureIgnoreHostKey(),
		}
		to := "127.0.0.1:" + all.options["port"]
		socket, err := net.Dial("tcp", to)
		check(err)
		connection, channels, requests, err := ssh.NewClientConn(socket, to, config)
		if err != nil {
			log.Fatal(one.text, ": ", err)
		}
		if one.kind == "own" {
			own(connection, channels, requests)
			connection.Close()
			fmt.Println("done", one.text)
			continue
		}
		client := ssh.NewClient(connection, channels, requests)
		switch one.kind {
		case "echo":
			echo(client, one)
		case "terminal":
			terminal(client, one)
		case "connection":
			forwarded(client, one)
		default:
			log.Fatal("no such job: ", one.text)
		}
		client.Close()
		fmt.Println("done", one.text)
	}
}

func same(one job, got, wanted []byte) {
	if !bytes.Equal(got, wanted) {
		log.Fatalf("%s: %d other bytes than the %d wanted: %.100q", one.text, len(got), len(wanted), got)
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

func echo(client *ssh.Client, one job) {
	session, err := client.NewSession()
	check(err)
	sent := pattern(one.number("bytes"))
	session.Stdin = bytes.NewReader(sent)
	got, err := session.Output(one.options["program"])
	if err != nil {
		log.Fatal(one.text, ": ", err)
	}
	same(one, got, sent)
}

func terminal(client *ssh.Client, one job) {
	session, err := client.NewSession()
	check(err)
	var out, failures bytes.Buffer
	session.Stdout, session.Stderr = &out, &failures
	check(session.RequestPty(term, rows, columns, ssh.TerminalModes{ssh.ECHO: 0}))
	check(session.Setenv(variable, value))
	err = session.Run("terminal 7")
	var exit *ssh.ExitError
	if !errors.As(err, &exit) || exit.ExitStatus() != 7 {
		log.Fatal(one.text, ": ", err)
	}
	same(one, out.Bytes(), fmt.Appendf(nil, "%s %dx%d %s=%s\n", term, columns, rows, variable, value))
	same(one, failures.Bytes(), []byte("err\n"))
}

func forwarded(client *ssh.Client, one job) {
	to := net.JoinHostPort("127.0.0.1", one.options["port"])
	connection, err := client.Dial("tcp", to)
	check(err)
	_, err = connection.Write([]byte("ping"))
	check(err)
	check(connection.(interface{ CloseWrite() error }).CloseWrite())
	got, err := io.ReadAll(connection)
	check(err)
	same(one, got, []byte("pong"))
}
