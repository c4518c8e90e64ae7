// SPDX-License-Identifier: Apache-2.0
#pragma once
// Paths, or one image, on standard input.
#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace vitrail::app {

// Reads standard input as a list of paths that end in newlines, or in NULs (find -print0) if there is one in what
// arrives first.  Empty lines are skipped, and counted in a warning at the end.
class StandardInput {
 public:
  // Whether the first bytes are those of an image, or of another file that is no list of paths, for which it waits;
  // false after next_path().  Then image() returns the content.
  bool is_image();
  std::vector<std::byte> image();

  // Waits for the next path.  None at the end.  Throws Error if reading fails, or for a path of more than 1 MiB
  // or as many empty ones.
  std::optional<std::string> next_path();

  // Whether next_path() waits in another thread.
  bool waiting() const { return waiting_; }

 private:
  bool read_more();

  std::string buffer_;
  size_t begin_ = 0;  // position in buffer_ of the next path
  size_t blank_ = 0;  // empty lines so far
  char separator_ = 0;
  bool separator_known_ = false, started_ = false, ended_ = false;
  std::atomic<bool> waiting_{false};
};

}  // namespace vitrail::app
