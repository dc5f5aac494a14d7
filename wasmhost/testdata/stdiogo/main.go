//go:build wasip1

// A program that writes each record back with its message in capitals; a message "drop" does not come back.
package main

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
)

func main() {
	out := json.NewEncoder(os.Stdout)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var record map[string]any
		if err := json.Unmarshal(lines.Bytes(), &record); err != nil {
			panic(err)
		}
		text, _ := record["message"].(string)
		if text == "drop" {
			continue
		}
		record["message"] = strings.ToUpper(text)
		if err := out.Encode(record); err != nil {
			panic(err)
		}
	}
}
