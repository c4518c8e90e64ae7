// SPDX-License-Identifier: Apache-2.0
#pragma once
// How results and failures are written.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

namespace vitrail::app {

enum class Format { text, json, csv };
Format format_from_name(const std::string& name);

// One JSON object on a line of standard output.  Bytes that are not UTF-8 (in a path) become U+FFFD.
void print_json(const nlohmann::ordered_json& object);

// A field of a CSV row, quoted where it must be (RFC 4180).
std::string csv_field(const std::string& text);

// "vitrail: error: …" on standard error, and the same with "warning".
void print_error(const std::string& message);
void print_warning(const std::string& message);

// What stands before an image's own message: its path, unless the message begins with it.
std::string with_path(const std::string& path, const std::string& message);

// A count on standard error, only when that is a terminal and nobody asked for quiet.
class Progress {
 public:
  Progress(const char* what, size_t total, bool quiet);
  ~Progress();  // clears the line
  void step();

 private:
  const char* what_;
  size_t total_, done_ = 0;
  bool on_;
};

}  // namespace vitrail::app
