// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/output/progress.h"

#include <fmt/format.h>

#include "apps/vitrail/output/output.h"
#include "apps/vitrail/output/status_text.h"
#include "apps/vitrail/output/text_width.h"

namespace vitrail::app {

std::string duration_text(double seconds) {
  const auto total = static_cast<int64_t>(seconds);
  return total >= 3600 ? fmt::format("{}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60)
                       : fmt::format("{}:{:02}", total / 60, total % 60);
}

std::string byte_count_text(int64_t bytes) {
  constexpr const char* kUnits[] = {"kB", "MB", "GB", "TB"};
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  for (; value >= 999.95 && unit + 1 < std::size(kUnits); value /= 1000) ++unit;
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

StatusLine::StatusLine(bool quiet) : enabled_(!quiet && has_control_sequences()) {}

StatusLine::~StatusLine() {
  if (enabled_) clear_status();
}

bool StatusLine::due(bool last) const {
  constexpr std::chrono::milliseconds kInterval{150};
  return enabled_ && (last || std::chrono::steady_clock::now() - last_draw_ >= kInterval);
}

void StatusLine::draw(const std::string& text) {
  draw_status(text);
  last_draw_ = std::chrono::steady_clock::now();
}

Progress::Progress(const char* what, std::optional<size_t> total, bool quiet)
    : what_(what), total_(total), line_(quiet || total == 1) {}

void Progress::step(int64_t count) {
  done_ += count;
  const auto total = static_cast<int64_t>(total_.value_or(0));
  if (!line_.due(done_ == total)) return;
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const double rate = static_cast<double>(done_) / seconds;
  Status status{.what = what_, .done = done_, .total = total, .count = std::to_string(done_)};
  if (total_) {
    status.count += fmt::format("/{}", total);
    status.parts.push_back(time_left_text(static_cast<double>(total - done_) / rate));
  }
  status.parts.push_back(fmt::format("{:.1f} {}/s", rate, what_));
  line_.draw(status_text(status, status_width()));
}

void ByteProgress::update(int64_t done, int64_t total) {
  if (first_ < 0) {
    first_ = done;
    start_ = Clock::now();
  }
  if (!line_.due(done == total)) return;
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const double rate = seconds > 0 ? static_cast<double>(done - first_) / seconds : 0;
  Status status{.what = what_, .done = done, .total = total};
  status.count = byte_count_text(done) + "/" + byte_count_text(total);
  if (rate > 0) {
    status.parts = {time_left_text(static_cast<double>(total - done) / rate),
                    byte_count_text(static_cast<int64_t>(rate)) + "/s"};
  }
  line_.draw(status_text(status, status_width()));
}

}  // namespace vitrail::app
