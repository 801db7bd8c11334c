// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package text

import "strings"

// mostShellBytes is more than most people type.
const mostShellBytes = 200

// ShellLine returns the words of a command as a shell reads them.
func ShellLine(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = shellWord(word)
		// A shell sets a variable rather than run such a program.
		if i == 0 && quoted[0] == word && strings.Contains(word, "=") {
			quoted[0] = "'" + word + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// ShellWords returns the words of a command as a shell reads them, for people to copy. Where the
// command is long, an ellipsis takes the place of its arguments.
func ShellWords(words []string) string {
	if line := ShellLine(words); len(line) <= mostShellBytes || len(words) == 1 {
		return line
	}
	return ShellLine(words[:1]) + " ..."
}

func shellWord(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,+@%"
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
