// SPDX-License-Identifier: Apache-2.0
#pragma once
// Output of results, errors and the status line.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::app {

enum class Format { text, json, csv };
Format format_from_name(const std::string& name);

// Writes `text` to standard output or flushes it.  Throw Error if that fails: a full disk, a closed stream.
void write_output(std::string_view text);
void flush_output();

// fmt::print() to standard output, which throws Error if the output cannot be written.
template <class... Args>
void print_output(fmt::format_string<Args...> format, Args&&... args) {
  write_output(fmt::format(format, std::forward<Args>(args)...));
}

// Writes a line of `text` to standard error, escaped as a message.  Does nothing if that fails.
void print_note(std::string_view text);

// A name with control characters (C0, DEL, C1) and bytes that are not UTF-8 as \xNN.  They would break lines, a
// terminal would interpret them, and they may come from a file.  JSON and CSV output have the names as they are.
std::string escaped(std::string_view name);

// JSON on one line.  Bytes that are not UTF-8 (in a path) become U+FFFD.
std::string json_text(const nlohmann::ordered_json& value);

// Prints one JSON object on a line of standard output.
void print_json(const nlohmann::ordered_json& object);

// The argument for a shell, with quotes where they are necessary.
std::string shell_quoted(const std::string& argument);
// The program's name and its arguments as a line for a shell.
std::string command_line(const std::vector<std::string>& arguments);

// Print "vitrail: error: …" or "vitrail: warning: …" on standard error, with colours on a terminal unless the
// environment has NO_COLOR (no-color.org) or a dumb terminal.
void print_error(const std::string& message);
void print_warning(const std::string& message);  // the same message once

// The message with the path of the image in front, unless it begins with it already.
std::string with_path(const std::string& path, const std::string& message);

// Whether standard error is a terminal that knows control sequences: TERM is set, and not to "dumb".
bool has_control_sequences();

// Replaces the status line of the terminal by `text`, cut at the terminal's width.  All other functions remove the line
// before they write.  Only for a standard error that is a terminal.  Does nothing if writing fails.
void draw_status(std::string_view text);
void clear_status();

}  // namespace vitrail::app
