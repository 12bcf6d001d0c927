// Command peer answers what parsers of others make of a text, one a line: texts come Base64 encoded on stdin, answers go
// to stdout as JSON. The argument says of what: references or challenges.
package main

import (
	"bufio"
	_ "crypto/sha256"
	_ "crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	containerd "github.com/containerd/containerd/v2/core/remotes/docker/auth"
	"github.com/distribution/reference"
	docker "github.com/docker/distribution/registry/client/auth/challenge"
)

// Reference is a reference after Docker's normalisation; of a text that is none only Error is set.
type Reference struct {
	Host       string `json:"host,omitempty"`
	Repository string `json:"repository,omitempty"`
	Tag        string `json:"tag,omitempty"`
	Digest     string `json:"digest,omitempty"`
	Error      string `json:"error,omitempty"`
}

// Challenge is one way in which a registry wants to be shown who asks.
type Challenge struct {
	Scheme     string            `json:"scheme"`
	Parameters map[string]string `json:"parameters"`
}

// Challenges holds what two parsers make of one WWW-Authenticate header.
type Challenges struct {
	Containerd []Challenge `json:"containerd"`
	Docker     []Challenge `json:"docker"`
}

func readReference(text string) any {
	whole, err := reference.ParseNormalizedNamed(text)
	if err != nil {
		return Reference{Error: err.Error()}
	}
	answer := Reference{Host: reference.Domain(whole), Repository: reference.Path(whole)}
	if digested, ok := whole.(reference.Digested); ok {
		answer.Digest = digested.Digest().String()
	}
	if tagged, ok := reference.TagNameOnly(whole).(reference.Tagged); ok {
		answer.Tag = tagged.Tag()
	}
	return answer
}

func readChallenges(text string) any {
	header := http.Header{"Www-Authenticate": []string{text}}
	answer := Challenges{Containerd: []Challenge{}, Docker: []Challenge{}}
	for _, one := range containerd.ParseAuthHeader(header) {
		scheme := map[containerd.AuthenticationScheme]string{
			containerd.BasicAuth:  "basic",
			containerd.BearerAuth: "bearer",
			containerd.DigestAuth: "digest",
		}[one.Scheme]
		answer.Containerd = append(answer.Containerd, Challenge{scheme, one.Parameters})
	}
	response := &http.Response{StatusCode: http.StatusUnauthorized, Header: header}
	for _, one := range docker.ResponseChallenges(response) {
		answer.Docker = append(answer.Docker, Challenge{one.Scheme, one.Parameters})
	}
	return answer
}

func main() {
	readers := map[string]func(string) any{"references": readReference, "challenges": readChallenges}
	var read func(string) any
	if len(os.Args) == 2 {
		read = readers[os.Args[1]]
	}
	if read == nil {
		fmt.Fprintln(os.Stderr, "usage: peer references|challenges")
		os.Exit(2)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	for lines.Scan() {
		text, err := base64.StdEncoding.DecodeString(lines.Text())
		if err == nil {
			err = encoder.Encode(read(string(text)))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	out.Flush()
}
