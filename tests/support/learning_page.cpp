// SPDX-License-Identifier: Apache-2.0
#include "tests/support/learning_page.h"

#include <cmath>
#include <cstring>
#include <stdexcept>

#include "vitrail/base/base64_internal.h"
#include "vitrail/base/gzip_internal.h"

namespace vitrail::testing {
namespace {

template <class T>
T read_at(const std::string& bytes, size_t offset) {
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

}  // namespace

image::Image smooth_image(int64_t width, int64_t height, int64_t channels) {
  image::Image image = image::make_image(width, height, channels);
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      for (int64_t c = 0; c < channels; ++c)
        image.row(y)[x * channels + c] = static_cast<uint8_t>(
            128 + 120 * std::sin(0.2 * static_cast<double>(x * (c + 1)) + 0.1 * static_cast<double>(y)));
  return image;
}

void ReadPage::read(explain::LearningPage of) {
  page = std::move(of);
  manifest = nlohmann::ordered_json::parse(element("manifest"));
}

PageOfModel::PageOfModel(const std::filesystem::path& folder, const explain::ExplainOptions& options,
                         const std::string& image_name, int64_t width, int64_t height)
    : opened(models::open_model(folder)),
      model(opened, {.threads = 1}),
      photo(smooth_image(width, height, image::channels_of(model.color_mode()))) {
  read(explain::explain(model, opened, {.photo = photo, .name = image_name, .model = folder.filename().string()},
                        options));
}

std::string ReadPage::element(const std::string& id) const {
  const size_t at = page.html.find("id=\"" + id + "\">");
  if (at == std::string::npos) throw std::runtime_error("no element " + id);
  const size_t begin = page.html.find('>', at) + 1;
  return page.html.substr(begin, page.html.find("</script>", begin) - begin);
}

Tensor ReadPage::array(const std::string& name) const {
  const auto& entry = manifest.at("tensors").at(name);
  const std::string packed = from_base64(element("blob-" + entry["blob"].dump()), name);
  const std::vector<std::byte> content = gunzip(std::as_bytes(std::span(packed)), uint64_t{1} << 32, name);
  const std::string bytes(reinterpret_cast<const char*>(content.data()), content.size());
  const auto offset = entry["offset"].get<size_t>();
  const std::string dtype = entry["dtype"];
  Shape shape;
  for (const auto& extent : entry["shape"]) shape.push_back(extent.get<int64_t>());
  if (entry.contains("rows")) shape[shape.rank() - 2] = static_cast<int64_t>(entry["rows"].size());
  const Tensor values = Tensor::empty(shape);
  const int64_t columns = values.size(-1);
  for (int64_t i = 0; i < values.numel(); ++i) {
    const auto at = static_cast<size_t>(i);
    float& value = values.data<float>()[i];
    if (dtype == "f32") {
      value = read_at<float>(bytes, offset + at * 4);
    } else if (dtype == "f16") {
      value = static_cast<float>(read_at<Float16>(bytes, offset + at * 2));
    } else if (dtype == "i8") {
      const size_t scale = entry["scales"].get<size_t>() + static_cast<size_t>(i / columns) * 4;
      value = static_cast<float>(read_at<int8_t>(bytes, offset + at)) * read_at<float>(bytes, scale);
    } else {
      const int64_t channel = i / (shape[2] * shape[3]);
      const auto& [factor, constant] = entry["channels"][static_cast<size_t>(channel)].get<std::pair<double, double>>();
      value = static_cast<float>(read_at<uint8_t>(bytes, offset + at) * factor + constant);
    }
  }
  return values;
}

}  // namespace vitrail::testing
