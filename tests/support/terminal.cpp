// SPDX-License-Identifier: Apache-2.0
#include "tests/support/terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <stdexcept>

#include "tests/support/paths.h"

namespace vitrail::testing {
namespace {

[[noreturn]] void exec_in_terminal(const char* terminal, const std::string& name,
                                   const std::vector<std::string>& arguments, const TerminalOptions& options) {
  ::setsid();
  const int device = ::open(terminal, O_RDWR);  // becomes the controlling terminal
  const winsize size{
      .ws_row = 24, .ws_col = static_cast<unsigned short>(options.columns), .ws_xpixel = 0, .ws_ypixel = 0};
  ::ioctl(device, TIOCSWINSZ, &size);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(device, stream);
  if (!options.output.empty()) ::dup2(::open(options.output.c_str(), O_WRONLY | O_CREAT, 0600), STDOUT_FILENO);
  ::unsetenv("NO_COLOR");
  ::setenv("TERM", "xterm", 1);
  for (const auto& [variable, value] : options.environment) ::setenv(variable.c_str(), value.c_str(), 1);
  std::vector<char*> argv{const_cast<char*>(name.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execv(name.c_str(), argv.data());
  ::_exit(127);
}

std::string read_until_closed(int descriptor) {
  std::string text;
  std::array<char, 4096> buffer;
  for (ssize_t count; (count = ::read(descriptor, buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<size_t>(count));
  }
  return text;  // the last read fails with EIO when the program has ended
}

// The number of bytes of the escape sequence "\033[…LETTER" at the front of `text`.
size_t escape_length(const std::string& text, size_t at) {
  return text.find_first_of("ABCDEFGHJKSTfmhlsu", at + 2) + 1 - at;
}

}  // namespace

TerminalResult run_in_terminal(const std::vector<std::string>& arguments, const TerminalOptions& options) {
  const int host = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  std::array<char, 128> terminal{};
  if (host < 0 || ::grantpt(host) != 0 || ::unlockpt(host) != 0 ||
      ::ptsname_r(host, terminal.data(), terminal.size()) != 0) {
    throw std::runtime_error("no pseudo-terminal");
  }
  const std::string name = program().string();
  const pid_t child = ::fork();
  if (child == 0) exec_in_terminal(terminal.data(), name, arguments, options);
  TerminalResult result;
  result.transcript = read_until_closed(host);
  ::close(host);
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) throw std::runtime_error("vitrail could not be started");
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

std::vector<std::string> TerminalResult::screen(int columns) const {
  using Line = std::vector<std::string>;  // a character per column
  std::vector<Line> lines(1);
  size_t row = 0, column = 0;
  for (size_t at = 0, length = 1; at < transcript.size(); at += length) {
    length = 1;
    const char c = transcript[at];
    if (c == '\r') {
      column = 0;
    } else if (c == '\n') {
      if (++row == lines.size()) lines.emplace_back();
    } else if (c == '\033') {
      length = escape_length(transcript, at);
      if (transcript[at + length - 1] == 'K' && column < lines[row].size()) lines[row].resize(column);
    } else {
      while (at + length < transcript.size() && (transcript[at + length] & 0xc0) == 0x80) ++length;
      if (column == static_cast<size_t>(columns)) {
        column = 0;
        if (++row == lines.size()) lines.emplace_back();
      }
      if (lines[row].size() <= column) lines[row].resize(column + 1, " ");
      lines[row][column++] = transcript.substr(at, length);
    }
  }
  std::vector<std::string> texts;
  for (const Line& line : lines) {
    texts.emplace_back();
    for (const std::string& character : line) texts.back() += character;
  }
  if (texts.back().empty()) texts.pop_back();
  return texts;
}

}  // namespace vitrail::testing
