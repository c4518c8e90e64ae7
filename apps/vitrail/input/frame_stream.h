// SPDX-License-Identifier: Apache-2.0
#pragma once
// The frames of a video on standard input: raw pixels or motion JPEG.
#include <CLI/CLI.hpp>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "vitrail/image/decode.h"
#include "vitrail/image/mjpeg.h"

namespace vitrail::app {

struct FrameOptions {
  std::string size;  // "W,H" of raw frames
  bool mjpeg = false, drop = false;

  void add_to(CLI::App& command);  // --frame-size, --mjpeg, --drop-frames
  bool given() const { return !size.empty() || mjpeg; }
  // Throws CLI::ValidationError for options that exclude each other, and for inputs beside standard input.
  void check(const CLI::App& command, const std::vector<std::string>& inputs) const;
};

// The place of a frame in its stream.
struct FrameNumber {
  int64_t number = 0;              // from 0, dropped ones included
  std::optional<int64_t> dropped;  // between this and the last one that was used; none: no frame is dropped
};

struct Frame {
  FrameNumber place = {};
  image::Image pixels = {};  // empty: bytes are a JPEG file
  std::vector<std::byte> bytes = {};
  std::string error = {};  // empty: it is complete
};

// A thread reads ahead by one frame.  With `drop`, the newest frame replaces one that waits, else the thread waits.
// SIGHUP, SIGINT and SIGTERM end the stream; a second one ends the process, as without a stream.
class FrameStream {
 public:
  FrameStream(const FrameOptions& options, const image::DecodeOptions& decode);
  ~FrameStream();
  FrameStream(const FrameStream&) = delete;
  FrameStream& operator=(const FrameStream&) = delete;

  // Waits for the next frame.  None at the end of the stream.  Throws Error if reading fails, and for motion JPEG
  // without any frame.
  std::optional<Frame> next();
  // The image of a frame.  Throws Error for one that is damaged.
  image::Image image_of(Frame& frame) const;

 private:
  void read_frames();
  void read_raw();
  void read_mjpeg();
  size_t read_some(void* to, size_t size);
  void put(Frame frame, bool is_last = false);

  image::DecodeOptions decode_;
  int64_t width_ = 0, height_ = 0;  // size of raw frames
  bool drop_;
  int64_t count_ = 0;       // number of frames that were read
  int64_t last_used_ = -1;  // the number of the last frame that next() returned

  std::mutex mutex_;  // protects the members below
  std::condition_variable changed_;
  std::optional<Frame> waiting_;
  bool ended_ = false, stopped_ = false;
  std::string failure_;  // reading failed; empty: it did not
  std::thread thread_;
};

}  // namespace vitrail::app
