// SPDX-License-Identifier: Apache-2.0
#pragma once
// Progress in the status line of a terminal (output.h).
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace vitrail::app {

// "m:ss" or "h:mm:ss"
std::string duration_text(double seconds);

// "512 B", "1.5 MB": decimal units
std::string byte_count_text(int64_t bytes);

// The status line, redrawn a few times per second.  Shown only on a terminal and unless quiet.
class StatusLine {
 public:
  explicit StatusLine(bool quiet);
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  // Whether a text would be drawn now; the last one of a sequence always is.
  bool due(bool last) const;
  void draw(const std::string& text);

 private:
  bool enabled_;
  std::chrono::steady_clock::time_point last_draw_{};
};

// Counts items: "images ━━━━━╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌ 120/480  0:08 left  45.1 images/s".  A single item has no line.
class Progress {
 public:
  // what: the plural of the items.  No total: it is not known.
  Progress(const char* what, std::optional<size_t> total, bool quiet);
  void step(int64_t count = 1);

 private:
  using Clock = std::chrono::steady_clock;

  const char* what_;
  std::optional<size_t> total_;
  int64_t done_ = 0;
  Clock::time_point start_ = Clock::now();
  StatusLine line_;
};

// Counts bytes: "model.safetensors ━━━━━╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌ 5.7 MB/22.9 MB  0:02 left  11.2 MB/s".
class ByteProgress {
 public:
  explicit ByteProgress(std::string what, bool quiet) : what_(std::move(what)), line_(quiet) {}
  void update(int64_t done, int64_t total);
  void set_what(const std::string& what) { what_ = what; }

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_;
  int64_t first_ = -1;  // done at the first update: what was there already has no rate
  Clock::time_point start_ = Clock::now();
  StatusLine line_;
};

}  // namespace vitrail::app
