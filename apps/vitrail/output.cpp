// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/output.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "vitrail/base/error.h"
#include "vitrail/base/utf8_internal.h"

namespace vitrail::app {

Format format_from_name(const std::string& name) {
  if (name == "text") return Format::text;
  if (name == "json") return Format::json;
  if (name == "csv") return Format::csv;
  throw Error("--format", "text, json or csv", "'" + name + "'");
}

namespace {

// The number of bytes of the UTF-8 character at the front of `text`; 0 if it is invalid or a control character.
size_t printable_bytes(std::string_view text) {
  const size_t length = utf8_length(text);
  const auto first = static_cast<unsigned char>(text.front());
  const bool c0_control = first < 0x20 || first == 0x7f;
  const bool c1_control = length == 2 && first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0;
  return c0_control || c1_control ? 0 : length;
}

void write_line_to_stderr(std::string_view text) {
  // One call, so that lines of several processes do not mix.  There is nobody to tell if it fails.
  const std::string line = std::string(text) + "\n";
  static_cast<void>(std::fwrite(line.data(), 1, line.size(), stderr));
}

}  // namespace

void write_output(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size())
    throw Error(str("standard output: write failed: ", std::strerror(errno)));
}

void flush_output() {
  if (std::fflush(stdout) != 0) throw Error(str("standard output: write failed: ", std::strerror(errno)));
}

std::string escaped(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t size = text.front() == '\n' ? 1 : printable_bytes(text);
    if (size == 0) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    } else {
      result += text.substr(0, size);
    }
    text.remove_prefix(std::max<size_t>(size, 1));
  }
  return result;
}

void print_note(std::string_view text) { write_line_to_stderr(escaped(text)); }

void draw(std::string_view text) {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
  std::fflush(stderr);
}

void print_json(const nlohmann::ordered_json& object) {
  print_output("{}\n", object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

std::string command_line(const std::vector<std::string>& arguments) {
  std::string line = "vitrail";
  for (const std::string& argument : arguments) {
    const bool plain = !argument.empty() && std::all_of(argument.begin(), argument.end(), [](unsigned char c) {
      return std::isalnum(c) != 0 ||
             std::string_view("/._-=,:+@%").find(static_cast<char>(c)) != std::string_view::npos;
    });
    std::string quoted = "'";
    for (const char c : argument) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += " " + (plain ? argument : quoted + "'");
  }
  return line;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

void print_error(const std::string& message) { print_note("vitrail: error: " + message); }
void print_warning(const std::string& message) { print_note("vitrail: warning: " + message); }

std::string with_path(const std::string& path, const std::string& message) {
  return message.starts_with(path) ? message : path + ": " + message;
}

Progress::Progress(const char* what, std::optional<size_t> total, bool quiet)
    : what_(what), total_(total), enabled_(!quiet && total != 1 && ::isatty(STDERR_FILENO)) {}

Progress::~Progress() {
  if (enabled_) draw("\r\033[K");
}

void Progress::step() {
  ++done_;
  if (!enabled_) return;
  draw(total_ ? fmt::format("\r{} {}/{}", what_, done_, *total_) : fmt::format("\r{} {}", what_, done_));
}

}  // namespace vitrail::app
