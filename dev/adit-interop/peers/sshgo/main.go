// A client and a server of the tests on golang.org/x/crypto/ssh.
//
//	sshgo algorithms  says "cipher NAME", "mac NAME", "kex NAME"
//	sshgo server --host-key FILE --authorized-keys FILE [--rekey BYTES]
//	                  says "ready HOST:PORT", then "keys" for every key exchange; programs are run
//	                  by a shell
//	sshgo jobs --port N --key FILE --user NAME JOB...
//	                  says "done JOB" for each
//
// A job is a kind and options, "echo,bytes=100,cipher=aes128-ctr"; each has a connection of its own.
// It ends after some minutes in any case.
package main

import (
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

const life = 5 * time.Minute

// What was typed.
type words struct {
	options map[string]string
	jobs    []job
}

// One connection and what happens on it.
type job struct {
	text, kind string
	options    map[string]string
}

func read(args []string) words {
	all := words{options: map[string]string{}}
	for i := 0; i < len(args); i++ {
		if name, found := strings.CutPrefix(args[i], "--"); found && i+1 < len(args) {
			i++
			all.options[name] = args[i]
			continue
		}
		kind, rest, _ := strings.Cut(args[i], ",")
		one := job{args[i], kind, map[string]string{}}
		for option := range strings.SplitSeq(rest, ",") {
			name, value, _ := strings.Cut(option, "=")
			one.options[name] = value
		}
		all.jobs = append(all.jobs, one)
	}
	return all
}

func (j job) number(name string) int {
	return number(j.options[name])
}

func number(text string) int {
	if text == "" {
		return 0
	}
	value, err := strconv.Atoi(text)
	check(err)
	return value
}

// What is to be offered; nil without a wish.
func (j job) only(name string) []string {
	if value := j.options[name]; value != "" {
		return []string{value}
	}
	return nil
}

// All that the package has and calls safe.
func (j job) config() ssh.Config {
	return ssh.Config{
		Ciphers:        either(j.only("cipher"), ssh.SupportedAlgorithms().Ciphers),
		MACs:           either(j.only("mac"), ssh.SupportedAlgorithms().MACs),
		KeyExchanges:   either(j.only("kex"), ssh.SupportedAlgorithms().KeyExchanges),
		RekeyThreshold: uint64(j.number("rekey")),
	}
}

func either(wish, all []string) []string {
	if wish != nil {
		return wish
	}
	return all
}

func main() {
	log.SetFlags(0)
	if len(os.Args) < 2 {
		log.Fatal("algorithms, server or jobs")
	}
	time.AfterFunc(life, func() { log.Fatal("out of time") })
	all := read(os.Args[2:])
	switch os.Args[1] {
	case "algorithms":
		config := job{}.config()
		say("cipher", config.Ciphers)
		say("mac", config.MACs)
		// A second name of the first curve, which the package adds by itself.
		say("kex", append(config.KeyExchanges, "curve25519-sha256@libssh.org"))
	case "server":
		serve(all)
	case "jobs":
		work(all)
	default:
		log.Fatal("no such role")
	}
}

func say(kind string, names []string) {
	for _, name := range names {
		fmt.Println(kind, name)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func signer(path string) ssh.Signer {
	text, err := os.ReadFile(path)
	check(err)
	key, err := ssh.ParsePrivateKey(text)
	check(err)
	return key
}
