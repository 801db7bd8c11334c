// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"math"
	"strconv"
	"time"
)

// seconds is a flag's time: a number of seconds, or a duration with units.
type seconds time.Duration

// Set reads the value of the flag.
func (s *seconds) Set(word string) error {
	if number, err := strconv.ParseFloat(word, 64); err == nil && !math.IsNaN(number) && math.Abs(number) < 1e9 {
		*s = seconds(number * float64(time.Second))
		return nil
	}
	duration, err := time.ParseDuration(word)
	if err != nil {
		return errors.New("neither a number of seconds nor a time such as 90s or 2m")
	}
	*s = seconds(duration)
	return nil
}

// String writes the value.
func (s *seconds) String() string { return time.Duration(*s).String() }

// Type is the word for the value in the help.
func (s *seconds) Type() string { return "seconds" }
