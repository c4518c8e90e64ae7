// SPDX-License-Identifier: Apache-2.0
#include "vitrail/sam/prompt_file.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/json_checks_internal.h"
#include "vitrail/base/read_file.h"
#include "vitrail/base/text.h"

namespace vitrail::sam {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr int kMaxPromptDepth = 3;  // an object, its points, a point
constexpr size_t kMaxPromptBytes = size_t{1} << 30;

json parse_line(std::string_view line, const std::string& where) {
  if (json_depth(line) > kMaxPromptDepth) throw Error(where, "an object of points, a box and a mask", "more nesting");
  json object;
  try {
    object = json::parse(line);
  } catch (const json::exception&) {
    throw Error(where, "a JSON object", "text that is not JSON");
  }
  if (!object.is_object()) throw Error(where, "a JSON object", object.type_name());
  return object;
}

std::vector<double> numbers_of(const json& value, const std::string& where, const char* expected) {
  const bool valid = value.is_array() && std::ranges::all_of(value, [](const json& v) { return v.is_number(); });
  if (!valid) throw Error(where, expected, value.dump(-1, ' ', true, json::error_handler_t::replace));
  return value.get<std::vector<double>>();
}

Point point_of(const json& value, const std::string& where) {
  constexpr const char* kExpected = "a point [x, y, label] with the label 1 (in the object) or 0 (outside it)";
  const std::vector<double> numbers = numbers_of(value, where, kExpected);
  const bool labelled = numbers.size() == 3 && (numbers[2] == 0 || numbers[2] == 1);
  if (numbers.size() != 2 && !labelled) throw Error(where, kExpected, value.dump());
  return {numbers[0], numbers[1], labelled ? static_cast<int>(numbers[2]) : 1};
}

std::string text_of(const json& value, const std::string& where, const std::string& key) {
  if (!value.is_string()) throw Error(where, key + " as text", value.type_name());
  auto text = value.get<std::string>();
  if (text.empty() || text.find('\0') != text.npos) throw Error(where, key + " as a path", "\"" + text + "\"");
  return text;
}

PromptLine line_of(const json& object, const std::string& where, const fs::path& folder) {
  PromptLine line{.where = where};
  for (const auto& [key, value] : object.items()) {
    if (key == "image") {
      line.image = folder / text_of(value, where, key);
    } else if (key == "mask_logits") {
      line.mask_logits = folder / text_of(value, where, key);
    } else if (key == "points") {
      if (!value.is_array()) throw Error(where, "points as a list of [x, y, label]", value.type_name());
      for (const json& point : value) line.prompt.points.push_back(point_of(point, where));
    } else if (key == "box") {
      const std::vector<double> box = numbers_of(value, where, "a box [x0, y0, x1, y1]");
      if (box.size() != 4) throw Error(where, "a box [x0, y0, x1, y1]", value.dump());
      line.prompt.box = Box{box[0], box[1], box[2], box[3]};
    } else if (key == "multimask") {
      if (!value.is_boolean()) throw Error(where, "multimask true or false", value.type_name());
      line.prompt.multimask = value.get<bool>();
    } else {
      throw Error(where, "image, points, box, mask_logits or multimask", "\"" + key + "\"");
    }
  }
  if (line.image.empty()) throw Error(where, "the path of an image", "none");
  if (line.prompt.points.empty() && !line.prompt.box && line.mask_logits.empty()) {
    throw Error(where, "points, a box or mask_logits", "none");
  }
  return line;
}

// A range of columns or rows, which may begin within a pixel.
struct Cell {
  double first, last;
};

double overlap(double first, double last, int64_t pixel) {
  return std::max(0.0, std::min(last, static_cast<double>(pixel) + 1) - std::max(first, static_cast<double>(pixel)));
}

// The covered area of a cell, in pixels.
double covered(const BinaryMask& mask, const Cell& columns, const Cell& rows) {
  double sum = 0;
  for (auto y = static_cast<int64_t>(rows.first); y < mask.height && static_cast<double>(y) < rows.last; ++y) {
    double row = 0;
    for (auto x = static_cast<int64_t>(columns.first); x < mask.width && static_cast<double>(x) < columns.last; ++x) {
      if (mask.row(y)[x] != 0) row += overlap(columns.first, columns.last, x);
    }
    sum += row * overlap(rows.first, rows.last, y);
  }
  return sum;
}

}  // namespace

std::vector<PromptLine> parse_prompts(std::string_view text, const std::string& where, const fs::path& folder) {
  std::vector<PromptLine> lines;
  int64_t blank = 0;
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t size = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, size);
    text.remove_prefix(std::min(size + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == line.npos) {
      ++blank;
      continue;
    }
    const std::string place = str(where, ":", number);
    lines.push_back(line_of(parse_line(line, place), place, folder));
  }
  if (blank > 0) warn(str(where, ": ", counted(blank, "blank line"), " left out"));
  return lines;
}

std::vector<PromptLine> read_prompts(const fs::path& file) {
  std::vector<PromptLine> lines =
      parse_prompts(read_text_file(file, kMaxPromptBytes), file.string(), file.parent_path());
  if (lines.empty()) throw Error(file.string(), "a prompt per line", "none");
  return lines;
}

Tensor read_mask_logits(const fs::path& file) { return mask_logits_of(read_npy(file), file.string()); }

Tensor mask_logits_of(NpyArray array, const std::string& where) {
  const auto axes = static_cast<std::ptrdiff_t>(array.shape.size());
  const bool one_mask =
      axes >= 2 && std::all_of(array.shape.begin(), array.shape.end() - 2, [](int64_t n) { return n == 1; });
  if (!one_mask || array.dtype == DType::i64) {
    throw Error(where, "logits [h, w] of one mask in f32, with any number of axes of 1 in front",
                str(name_of(array.dtype), " ", json(array.shape).dump()));
  }
  if (array.dtype == DType::f64) array.f32.assign(array.f64.begin(), array.f64.end());
  const size_t axis = array.shape.size() - 2;
  return Tensor::from<float>({array.shape[axis], array.shape[axis + 1]}, array.f32);
}

Tensor logits_of(const BinaryMask& mask, int64_t size) {
  constexpr double kLimit = 1e-3;
  const double step = static_cast<double>(std::max(mask.width, mask.height)) / static_cast<double>(size);
  std::vector<float> logits;
  for (int64_t y = 0; y < size; ++y) {
    for (int64_t x = 0; x < size; ++x) {
      const auto cell = [&](int64_t i) {
        return Cell{static_cast<double>(i) * step, static_cast<double>(i + 1) * step};
      };
      const double part = std::clamp(covered(mask, cell(x), cell(y)) / (step * step), kLimit, 1 - kLimit);
      logits.push_back(static_cast<float>(std::log(part / (1 - part))));
    }
  }
  return Tensor::from<float>({size, size}, logits);
}

}  // namespace vitrail::sam
