// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs the vitrail program in a terminal (a pseudo-terminal, as `script` does).
#include <map>
#include <string>
#include <vector>

namespace vitrail::testing {

struct TerminalOptions {
  int columns = 80;
  std::map<std::string, std::string> environment = {};  // added to TERM=xterm; an empty NO_COLOR is none
  std::string output = {};                              // a file for standard output instead of the terminal
};

struct TerminalResult {
  int status = -1;         // exit status; 128 + n when signal n killed it
  std::string transcript;  // what the program wrote to the terminal, byte by byte; a new line is "\r\n"

  // The lines that a terminal of this many columns shows at the end.  Lines are wrapped at the last column; "\r",
  // "\n" and "\033[K" move the cursor and clear, and colours are dropped.
  std::vector<std::string> screen(int columns = 80) const;
};

TerminalResult run_in_terminal(const std::vector<std::string>& arguments, const TerminalOptions& options = {});

}  // namespace vitrail::testing
