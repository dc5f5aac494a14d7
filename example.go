// Package weir holds the file that shows every setting, for the program and for
// what explains the settings.
package weir

import _ "embed"

// Example is weir.example.yaml.
//
//go:embed weir.example.yaml
var Example string
