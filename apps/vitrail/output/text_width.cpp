// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/output/text_width.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "vitrail/base/utf8_internal.h"

namespace vitrail::app {

size_t width_of(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xC0U) != 0x80U; }));
}

std::string padded(const std::string& text, size_t width) {
  const size_t used = width_of(text);
  return used < width ? text + std::string(width - used, ' ') : text;
}

std::string_view first_columns(std::string_view text, size_t n) {
  size_t end = 0;
  while (end < text.size() && n-- > 0) end += std::max<size_t>(1, utf8_length(text.substr(end)));
  return text.substr(0, end);
}

size_t status_width() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return (known ? size.ws_col : 80) - 1;
}

}  // namespace vitrail::app
