// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/output/output.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>

#include "apps/vitrail/output/text_width.h"
#include "vitrail/base/error.h"
#include "vitrail/base/utf8_internal.h"
#include "vitrail/pipeline/prediction_json_internal.h"

namespace vitrail::app {

Format format_from_name(const std::string& name) {
  if (name == "text") return Format::text;
  if (name == "json") return Format::json;
  if (name == "csv") return Format::csv;
  throw Error("--format", "text, json or csv", "'" + name + "'");
}

namespace {

// The status line, which warnings of decoding threads remove too.
std::mutex status_mutex;
bool status_drawn = false;

void write_to_stderr(std::string_view text) { static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr)); }

// Colours and styles of ECMA-48.
constexpr const char *kRed = "\033[1;31m", *kYellow = "\033[1;33m", *kPlain = "\033[0m";

bool has_colors() {
  const char* no_color = std::getenv("NO_COLOR");
  return has_control_sequences() && (no_color == nullptr || *no_color == '\0');
}

// "vitrail: label: message"
void print_labelled(const char* label, const char* color, const std::string& message) {
  const std::string shown = has_colors() ? std::string(color) + label + kPlain : label;
  clear_status();
  write_to_stderr("vitrail: " + shown + " " + escape_message(message) + "\n");
}

}  // namespace

bool has_control_sequences() {
  const char* terminal = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) != 0 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

void write_output(std::string_view text) {
  clear_status();
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size())
    throw Error(str("standard output: write failed: ", std::strerror(errno)));
}

void flush_output() {
  if (std::fflush(stdout) != 0) throw Error(str("standard output: write failed: ", std::strerror(errno)));
}

std::string escaped(std::string_view name) { return escape_unprintable(name); }

void print_note(std::string_view text) {
  clear_status();
  // One call, so that lines of several processes do not mix.  There is nobody to tell if it fails.
  write_to_stderr(escape_message(text) + "\n");
}

void draw_status(std::string_view text) {
  const std::lock_guard lock(status_mutex);
  write_to_stderr("\r\033[K" + std::string(first_columns(escaped(text), status_width())));
  std::fflush(stderr);
  status_drawn = true;
}

void clear_status() {
  const std::lock_guard lock(status_mutex);
  if (!status_drawn) return;
  write_to_stderr("\r\033[K");
  std::fflush(stderr);
  status_drawn = false;
}

std::string json_text(const nlohmann::ordered_json& value) { return pipeline::json_line(value); }

void print_json(const nlohmann::ordered_json& object) { print_output("{}\n", json_text(object)); }

std::string shell_quoted(const std::string& argument) {
  const bool plain = !argument.empty() && std::all_of(argument.begin(), argument.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("/._-=,:+@%").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return argument;
  std::string quoted = "'";
  for (const char c : argument) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string command_line(const std::vector<std::string>& arguments) {
  std::string line = "vitrail";
  for (const std::string& argument : arguments) line += " " + shell_quoted(argument);
  return line;
}

void print_error(const std::string& message) { print_labelled("error:", kRed, message); }
void print_warning(const std::string& message) {
  constexpr size_t kMaxKept = 1000;  // a server does not end
  static std::mutex mutex;
  static std::set<std::string> said;
  {
    const std::lock_guard lock(mutex);
    if (said.size() < kMaxKept && !said.insert(message).second) return;
  }
  print_labelled("warning:", kYellow, message);
}

std::string with_path(const std::string& path, const std::string& message) {
  return message.starts_with(path) ? message : path + ": " + message;
}

}  // namespace vitrail::app
