// SPDX-License-Identifier: Apache-2.0
// Fuzzes files of prompts.  Every input must give lines or a vitrail::Error, and a prompt that passes the check must
// have points and a box inside the image.
#include "fuzz/inputs.h"
#include "vitrail/sam/prompt_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vitrail;
  constexpr int64_t kWidth = 640, kHeight = 480;
  const auto inside = [](double x, double y) { return x >= 0 && y >= 0 && x <= kWidth && y <= kHeight; };
  fuzz::attempt([&] {
    for (const sam::PromptLine& line : sam::parse_prompts(fuzz::text_of(data, size), "fuzz", "folder")) {
      if (line.image.empty() || !line.where.starts_with("fuzz:")) std::abort();
      fuzz::attempt([&] {
        sam::check_prompt(line.prompt, kWidth, kHeight, 256, line.where);
        for (const sam::Point& point : line.prompt.points) {
          if (!inside(point.x, point.y) || (point.label != 0 && point.label != 1)) std::abort();
        }
        const auto& box = line.prompt.box;
        if (box && !(inside(box->x0, box->y0) && inside(box->x1, box->y1) && box->x0 < box->x1)) std::abort();
      });
    }
  });
  return 0;
}
