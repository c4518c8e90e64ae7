// SPDX-License-Identifier: Apache-2.0
#pragma once
// Output of results, errors and progress.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

namespace vitrail::app {

enum class Format { text, json, csv };
Format format_from_name(const std::string& name);

// Prints one JSON object on a line of standard output.  Bytes that are not UTF-8 (in a path) become U+FFFD.
void print_json(const nlohmann::ordered_json& object);

// A field of a CSV row, quoted if necessary (RFC 4180).
std::string csv_field(const std::string& text);

// Print "vitrail: error: …" or "vitrail: warning: …" on standard error.
void print_error(const std::string& message);
void print_warning(const std::string& message);

// The message with the path of the image in front, unless it begins with it already.
std::string with_path(const std::string& path, const std::string& message);

// A progress counter on standard error.  Shown only on a terminal and unless quiet.
class Progress {
 public:
  Progress(const char* what, size_t total, bool quiet);
  ~Progress();  // clears the line
  void step();

 private:
  const char* what_;
  size_t total_, done_ = 0;
  bool enabled_;
};

}  // namespace vitrail::app
