package main

import (
	"bytes"
	"errors"
	"io"
	"log"

	"golang.org/x/crypto/ssh"
)

// Channels and global requests of types of the tests' own, the same at both ends: an end that is
// asked to "call" begins itself what the other has done before, and tells when it is done.
const (
	room  = "echo@example.com"
	upper = "upper@example.com"
	call  = "call@example.com"
	done  = "done@example.com"
	join  = "join@example.com"
	other = "other@example.com"
)

func own(connection ssh.Conn, channels <-chan ssh.NewChannel, requests <-chan *ssh.Request) {
	go func() {
		for opening := range channels {
			enter(opening)
		}
	}()
	ended := make(chan struct{}, 1)
	go answer(connection, requests, ended)
	begin(connection)
	granted, _, err := connection.SendRequest(call, true, nil)
	if err != nil || !granted {
		log.Fatal("no call: ", err)
	}
	<-ended
}

func answer(connection ssh.Conn, requests <-chan *ssh.Request, ended chan<- struct{}) {
	for request := range requests {
		switch request.Type {
		case upper:
			request.Reply(true, bytes.ToUpper(request.Payload))
		case call:
			request.Reply(true, nil)
			go begin(connection)
		case done:
			ended <- struct{}{}
		default:
			request.Reply(false, nil)
		}
	}
}

func begin(connection ssh.Conn) {
	granted, got, err := connection.SendRequest(upper, true, text("go"))
	if err != nil || !granted || !bytes.Equal(got, text("GO")) {
		log.Fatalf("upper: %v %q %v", granted, got, err)
	}
	granted, _, err = connection.SendRequest(other, true, nil)
	if err != nil || granted {
		log.Fatal("another request is not refused: ", err)
	}
	_, _, err = connection.OpenChannel(other, nil)
	var refused *ssh.OpenChannelError
	if !errors.As(err, &refused) || refused.Reason != ssh.UnknownChannelType {
		log.Fatal("another channel is not unknown: ", err)
	}
	channel, requests, err := connection.OpenChannel(room, []byte("room 1"))
	check(err)
	go ssh.DiscardRequests(requests)
	for _, name := range []string{join, other} {
		granted, err = channel.SendRequest(name, true, []byte("me"))
		if err != nil || granted != (name == join) {
			log.Fatal(name, granted, err)
		}
	}
	_, err = channel.Write([]byte("ping"))
	check(err)
	check(channel.CloseWrite())
	got, err = io.ReadAll(channel)
	if err != nil || string(got) != "ping" {
		log.Fatalf("echo: %q %v", got, err)
	}
	channel.Close()
	_, _, err = connection.SendRequest(done, false, nil)
	check(err)
}

// A string as SSH has it: some peers send nothing else.
func text(words string) []byte {
	return ssh.Marshal(struct{ Words string }{words})
}

func enter(opening ssh.NewChannel) {
	if opening.ChannelType() != room || string(opening.ExtraData()) != "room 1" {
		opening.Reject(ssh.UnknownChannelType, "unknown")
		return
	}
	channel, requests, err := opening.Accept()
	check(err)
	go func() {
		for request := range requests {
			request.Reply(request.Type == join && string(request.Payload) == "me", nil)
		}
	}()
	go func() {
		io.Copy(channel, channel)
		channel.CloseWrite()
		channel.Close()
	}()
}
