// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/input/frame_stream.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "vitrail/base/error.h"
#include "vitrail/base/fields.h"
#include "vitrail/image/image_view.h"

namespace vitrail::app {
namespace {

constexpr const char* kStream = "standard input";

std::array<int64_t, 2> parsed_size(const std::string& text) {
  constexpr int64_t kMaxSide = 65535;
  const size_t comma = text.find(',');
  try {
    if (comma == text.npos) throw Error("--frame-size", "W,H in pixels, such as 640,480", "'" + text + "'");
    const auto side = [&](std::string_view part) { return parse_integer("--frame-size", part, {1, kMaxSide}); };
    return {side(std::string_view(text).substr(0, comma)), side(std::string_view(text).substr(comma + 1))};
  } catch (const Error& error) {
    throw CLI::ValidationError(error.what());
  }
}

// What wakes a thread that waits for standard input: a pipe, because a signal may arrive in front of poll().
std::array<int, 2> wake_pipe{-1, -1};
std::atomic<bool> interrupted{false};

void wake() {
  const int error = errno;
  static_cast<void>(!::write(wake_pipe[1], "", 1));
  errno = error;
}

constexpr std::array kSignals{SIGHUP, SIGINT, SIGTERM};
std::array<struct sigaction, kSignals.size()> former_actions;

extern "C" void on_stream_signal(int /*signal*/) {
  interrupted = true;
  for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &former_actions[i], nullptr);
  wake();
}

void open_wake_pipe() {
  if (wake_pipe[0] >= 0) return;
  if (::pipe(wake_pipe.data()) != 0) throw Error(str("pipe: ", std::strerror(errno)));
  for (const int end : wake_pipe) ::fcntl(end, F_SETFD, FD_CLOEXEC);
}

void install_stream_signals() {
  struct sigaction action {};
  action.sa_handler = on_stream_signal;
  action.sa_flags = static_cast<int>(SA_RESTART);
  for (size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &former_actions[i]);
    if (former_actions[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &action, nullptr);  // nohup ignores SIGHUP
  }
}

}  // namespace

void FrameOptions::add_to(CLI::App& command) {
  command.add_option("--frame-size", size, "W,H: standard input has raw frames of this size, 8-bit RGB (rgb24)");
  command.add_flag("--mjpeg", mjpeg, "Standard input has frames in motion JPEG");
  command.add_flag("--drop-frames", drop, "Drop the frames that arrive while another one runs, but the newest");
}

void FrameOptions::check(const CLI::App& command, const std::vector<std::string>& inputs) const {
  if (!given()) {
    if (drop) throw CLI::ValidationError("--drop-frames", "expected --frame-size or --mjpeg beside it");
    return;
  }
  const char* const option = mjpeg ? "--mjpeg" : "--frame-size";
  if (mjpeg && !size.empty()) throw CLI::ValidationError(option, "expected no --frame-size beside it");
  if (inputs != std::vector<std::string>{"-"})
    throw CLI::ValidationError(option, "expected - as the only INPUT: frames are read from standard input");
  if (command.count("--batch") > 0)
    throw CLI::ValidationError("--batch", "has no effect on frames, which run one by one");
  if (!mjpeg) static_cast<void>(parsed_size(size));
}

FrameStream::FrameStream(const FrameOptions& options, const image::DecodeOptions& decode)
    : decode_(decode), drop_(options.drop) {
  if (!options.mjpeg) {
    const auto [width, height] = parsed_size(options.size);
    if (width * height > decode.max_pixels)
      throw Error("--frame-size", str("at most ", decode.max_pixels, " pixels"), str(width, "×", height));
    width_ = width;
    height_ = height;
  }
  open_wake_pipe();
  install_stream_signals();
  thread_ = std::thread([this] { read_frames(); });
}

FrameStream::~FrameStream() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  wake();
  thread_.join();
}

std::optional<Frame> FrameStream::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return waiting_ || ended_; });
  if (interrupted) return std::nullopt;
  if (!waiting_) {
    if (!failure_.empty()) throw Error(failure_);
    return std::nullopt;
  }
  Frame frame = std::move(*waiting_);
  waiting_.reset();
  lock.unlock();
  changed_.notify_all();
  if (drop_) frame.place.dropped = frame.place.number - last_used_ - 1;
  last_used_ = frame.place.number;
  return frame;
}

image::Image FrameStream::image_of(Frame& frame) const {
  if (!frame.error.empty()) throw Error(frame.error);
  if (frame.bytes.empty())
    return decode_.mode == image::ColorMode::rgb ? std::move(frame.pixels)
                                                 : image::to_image(frame.pixels, decode_.mode);
  return image::decode(frame.bytes, decode_, kStream);
}

void FrameStream::read_frames() {
  std::string failure;
  try {
    width_ > 0 ? read_raw() : read_mjpeg();
  } catch (const std::exception& error) {
    failure = error.what();
  }
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    failure_ = std::move(failure);
  }
  changed_.notify_all();
}

void FrameStream::read_raw() {
  while (true) {
    Frame frame{.pixels = image::make_image(width_, height_, 3)};
    std::vector<uint8_t>& pixels = frame.pixels.pixels;
    size_t size = 0;
    while (size < pixels.size()) {
      const size_t more = read_some(pixels.data() + size, pixels.size() - size);
      if (more == 0) break;
      size += more;
    }
    if (size == 0) return;
    const bool is_last = size < pixels.size();
    if (is_last)
      frame.error = Error(kStream,
                          str("frames of ", pixels.size(), " bytes, which are ", width_, "×", height_,
                              " pixels in RGB (--frame-size)"),
                          str("only ", size, " bytes of the last one"))
                        .what();
    put(std::move(frame), is_last);
    if (is_last) return;
  }
}

void FrameStream::read_mjpeg() {
  image::MjpegSplitter splitter;
  std::vector<std::byte> block(size_t{1} << 16);
  size_t total = 0;
  while (const size_t size = read_some(block.data(), block.size())) {
    total += size;
    splitter.add(std::span(block).first(size));
    while (std::optional<image::MjpegFrame> frame = splitter.next()) {
      put({.bytes = std::move(frame->bytes),
           .error = frame->damage.empty() ? "" : Error(kStream, "a complete JPEG image", frame->damage).what()});
    }
  }
  if (splitter.within_frame())
    put({.error = Error(kStream, "a complete JPEG image", "its beginning alone").what()}, true);
  if (count_ == 0 && total > 0)
    throw Error(kStream, "motion JPEG (--mjpeg), whose frames begin with the bytes FF D8 FF",
                str(total, " bytes without any"));
}

// The bytes that have arrived, at least one; 0 at the end of the stream.
size_t FrameStream::read_some(void* to, size_t size) {
  while (true) {
    std::array<pollfd, 2> descriptors{
        {{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0}, {.fd = wake_pipe[0], .events = POLLIN, .revents = 0}}};
    if (::poll(descriptors.data(), descriptors.size(), -1) < 0 && errno == EINTR) continue;
    if (descriptors[1].revents != 0) return 0;
    const ssize_t got = ::read(STDIN_FILENO, to, size);
    if (got >= 0) return static_cast<size_t>(got);
    if (errno != EINTR && errno != EAGAIN) throw Error(str(kStream, ": read failed: ", std::strerror(errno)));
  }
}

void FrameStream::put(Frame frame, bool is_last) {
  frame.place.number = count_++;
  {
    std::unique_lock lock(mutex_);
    if (!drop_ || is_last) changed_.wait(lock, [&] { return !waiting_ || stopped_; });
    waiting_ = std::move(frame);
  }
  changed_.notify_all();
}

}  // namespace vitrail::app
