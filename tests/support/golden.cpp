// SPDX-License-Identifier: Apache-2.0
// The reader of golden fixtures and the comparison of tensors.
#include "tests/support/golden.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace vitrail::testing {
namespace {

DType dtype_of(const std::string& name) {
  static const std::map<std::string, DType> names{{"F64", DType::f64},   {"F32", DType::f32}, {"F16", DType::f16},
                                                  {"BF16", DType::bf16}, {"I64", DType::i64}, {"I32", DType::i32},
                                                  {"I8", DType::i8},     {"U8", DType::u8},   {"BOOL", DType::boolean}};
  return names.at(name);
}

Tensor tensor_of(const nlohmann::json& entry, const std::string& data) {
  const auto extents = entry.at("shape").get<std::vector<int64_t>>();
  const Tensor tensor = Tensor::empty(Shape(std::span<const int64_t>(extents)), dtype_of(entry.at("dtype")));
  const auto begin = entry.at("data_offsets").at(0).get<size_t>();
  const auto size = entry.at("data_offsets").at(1).get<size_t>() - begin;
  const size_t expected = static_cast<size_t>(tensor.numel()) * size_of(tensor.dtype());
  if (size != expected || begin > data.size() || data.size() - begin < size) {
    throw std::runtime_error("a golden tensor's offsets and shape disagree");
  }
  if (size > 0) std::memcpy(tensor.raw(), data.data() + begin, size);
  return tensor;
}

// The multi-index of a row-major offset: "[1, 0, 7]".
std::string index_of(int64_t flat, const Shape& shape) {
  Shape index = shape;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    index[axis] = flat % shape[axis];
    flat /= shape[axis];
  }
  return index.to_string();
}

// The error of an element beyond its tolerance; ≤ 0 means within.  Equal infinities match, and NaN matches NaN.
double excess(double got, double want, double atol, double rtol) {
  if (got == want || (std::isnan(got) && std::isnan(want))) return -1;
  if (!std::isfinite(got) || !std::isfinite(want)) return INFINITY;
  return std::abs(got - want) - (atol + rtol * std::abs(want));
}

}  // namespace

const Tensor& Golden::operator[](const std::string& name) const {
  const auto found = tensors.find(name);
  if (found != tensors.end()) return found->second;
  std::string names;
  for (const auto& entry : tensors) names += " " + entry.first;
  throw std::runtime_error("no golden tensor '" + name + "' among:" + names);
}

Golden read_golden(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  uint64_t header_size = 0;  // little endian, like every machine that these tests run on
  file.read(reinterpret_cast<char*>(&header_size), sizeof header_size);
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  if (content.size() < header_size) throw std::runtime_error("truncated: " + path.string());
  const auto header = nlohmann::json::parse(content.substr(0, header_size));
  const std::string data = content.substr(header_size);

  Golden golden;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      golden.config = entry.value("config", "");
    } else {
      golden.tensors.emplace(name, tensor_of(entry, data));
    }
  }
  return golden;
}

::testing::AssertionResult close(const Tensor& got, const Tensor& want, double atol, double rtol) {
  if (!got.defined() || !want.defined()) return ::testing::AssertionFailure() << "a tensor is undefined";
  if (!(got.shape() == want.shape())) {
    return ::testing::AssertionFailure() << "expected the shape " << want.shape() << ", got " << got.shape();
  }
  const Tensor a = got.to(DType::f64).contiguous();
  const Tensor b = want.to(DType::f64).contiguous();
  const double *x = a.data<double>(), *y = b.data<double>();
  int64_t worst = 0, failures = 0;
  for (int64_t i = 0; i < a.numel(); ++i) {
    const double error = excess(x[i], y[i], atol, rtol);
    failures += error > 0;
    if (error > excess(x[worst], y[worst], atol, rtol)) worst = i;
  }
  if (failures == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << failures << " of " << a.numel()
                                       << " elements exceed the tolerance; the worst is at "
                                       << index_of(worst, a.shape()) << ": expected " << y[worst] << ", got "
                                       << x[worst] << " (difference " << std::abs(x[worst] - y[worst]) << ", allowed "
                                       << atol + rtol * std::abs(y[worst]) << ")";
}

double squared_error(const Tensor& got, const Tensor& want) {
  double sum = 0;
  for (int64_t i = 0; i < got.numel(); ++i) {
    const double difference = double{got.data<float>()[i]} - want.data<float>()[i];
    sum += difference * difference;
  }
  return sum;
}

double relative_error(const Tensor& got, const Tensor& want) {
  return std::sqrt(squared_error(got, want) / squared_error(want, Tensor::zeros(want.shape())));
}

}  // namespace vitrail::testing
