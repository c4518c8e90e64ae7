// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/task.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "vitrail/image/encode.h"
#include "vitrail/pipeline/prediction_json_internal.h"

namespace vitrail::tasks {

void check_result_size(int64_t count, int64_t values, int64_t max) {
  if (values > 0 && count > max / values)
    throw TooLarge(str("the results have more than ", max, " values: send fewer images, or ask for less"));
}

void require_finite(const std::string& where, const Tensor& values) {
  const std::span numbers(values.data<float>(), static_cast<size_t>(values.numel()));
  const auto at = std::ranges::find_if_not(numbers, [](float number) { return std::isfinite(number); });
  if (at != numbers.end()) throw Error(where, "finite numbers", str(*at, " at element ", at - numbers.begin()));
}

std::string Request::failure_json(const std::string& name, const std::string& error) const {
  return pipeline::json_line(pipeline::failure_json(name, error));
}

std::vector<uint8_t> Request::render_png(const Item& item) const { return image::encode_png(render(item)); }

}  // namespace vitrail::tasks
