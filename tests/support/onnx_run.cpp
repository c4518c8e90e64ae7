// SPDX-License-Identifier: Apache-2.0
#include "tests/support/onnx_run.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace vitrail::testing {
namespace {

using Ints = std::vector<int64_t>;
using Array = OnnxArray;
using Node = OnnxFile::Node;
using Arrays = std::vector<const Array*>;

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error("ONNX: " + what); }

int64_t product(const Ints& shape, size_t first, size_t last) {
  int64_t count = 1;
  for (size_t i = first; i < last; ++i) count *= shape[i];
  return count;
}
int64_t product(const Ints& shape) { return product(shape, 0, shape.size()); }

Array array_of(const Ints& shape, bool integer = false) {
  return {shape, std::vector<double>(static_cast<size_t>(product(shape))), integer};
}

Ints strides_of(const Ints& shape) {
  Ints strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0; stride *= shape[i]) strides[i] = stride;
  return strides;
}

// Calls with each index of a shape in order.
void for_each_index(const Ints& shape, const std::function<void(const Ints&)>& action) {
  Ints at(shape.size());
  for (int64_t i = 0; i < product(shape); ++i) {
    action(at);
    for (size_t axis = shape.size(); axis-- > 0 && ++at[axis] == shape[axis];) at[axis] = 0;
  }
}

// The element of x at the last axes of an index; an axis of 1 is repeated.
double broadcast_at(const Array& x, const Ints& strides, const Ints& at) {
  int64_t offset = 0;
  const size_t skipped = at.size() - x.shape.size();
  for (size_t i = 0; i < x.shape.size(); ++i) offset += x.shape[i] == 1 ? 0 : strides[i] * at[skipped + i];
  return x.values[static_cast<size_t>(offset)];
}

Ints broadcast_shape(const Ints& a, const Ints& b) {
  Ints shape(std::max(a.size(), b.size()), 1);
  for (const Ints* from : {&a, &b}) {
    const size_t skipped = shape.size() - from->size();
    for (size_t i = 0; i < from->size(); ++i) {
      int64_t& to = shape[skipped + i];
      if (to != 1 && (*from)[i] != 1 && to != (*from)[i]) fail("shapes that do not broadcast");
      if (to == 1) to = (*from)[i];
    }
  }
  return shape;
}

Array binary(const Array& a, const Array& b, const std::function<double(double, double)>& function) {
  Array result = array_of(broadcast_shape(a.shape, b.shape), a.integer && b.integer);
  const Ints of_a = strides_of(a.shape), of_b = strides_of(b.shape);
  size_t i = 0;
  for_each_index(result.shape, [&](const Ints& at) {
    result.values[i++] = function(broadcast_at(a, of_a, at), broadcast_at(b, of_b, at));
  });
  return result;
}

Array unary(Array x, const std::function<double(double)>& function) {
  std::ranges::transform(x.values, x.values.begin(), function);
  return x;
}

Ints ints_of(const Array& x) { return {x.values.begin(), x.values.end()}; }
Ints ints_of(const Node& node, const std::string& name) {
  const std::vector<double>& values = node.numbers.at(name);
  return {values.begin(), values.end()};
}
int64_t int_of(const Node& node, const std::string& name, int64_t preset) {
  const auto found = node.numbers.find(name);
  return found == node.numbers.end() ? preset : static_cast<int64_t>(found->second.front());
}
size_t axis_of(int64_t axis, const Ints& shape) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis);
}

Array matmul(const Array& a, const Array& b) {
  const size_t ra = a.shape.size(), rb = b.shape.size();
  const int64_t m = a.shape[ra - 2], k = a.shape[ra - 1], n = b.shape[rb - 1];
  if (b.shape[rb - 2] != k) fail("MatMul of other sizes");
  const Ints outer_a(a.shape.begin(), a.shape.end() - 2), outer_b(b.shape.begin(), b.shape.end() - 2);
  Ints shape = broadcast_shape(outer_a, outer_b);
  const Ints outer = shape;
  shape.insert(shape.end(), {m, n});
  Array result = array_of(shape);
  // The number of the matrix of each operand.
  Array index_a = array_of(outer_a), index_b = array_of(outer_b);
  for (size_t i = 0; i < index_a.values.size(); ++i) index_a.values[i] = static_cast<double>(i);
  for (size_t i = 0; i < index_b.values.size(); ++i) index_b.values[i] = static_cast<double>(i);
  const Ints of_a = strides_of(outer_a), of_b = strides_of(outer_b);
  double* to = result.values.data();
  for_each_index(outer, [&](const Ints& at) {
    const double* x = a.values.data() + static_cast<int64_t>(broadcast_at(index_a, of_a, at)) * m * k;
    const double* y = b.values.data() + static_cast<int64_t>(broadcast_at(index_b, of_b, at)) * k * n;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t p = 0; p < k; ++p) {
        for (int64_t j = 0; j < n; ++j) to[i * n + j] += x[i * k + p] * y[p * n + j];
      }
    }
    to += m * n;
  });
  return result;
}

Array transpose(const Array& x, const Ints& order) {
  Ints shape;
  for (const int64_t axis : order) shape.push_back(x.shape[static_cast<size_t>(axis)]);
  Array result = array_of(shape, x.integer);
  const Ints strides = strides_of(x.shape);
  size_t i = 0;
  for_each_index(shape, [&](const Ints& at) {
    int64_t offset = 0;
    for (size_t axis = 0; axis < order.size(); ++axis) offset += strides[static_cast<size_t>(order[axis])] * at[axis];
    result.values[i++] = x.values[static_cast<size_t>(offset)];
  });
  return result;
}

Array reshape(Array x, Ints shape) {
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) shape[i] = x.shape[i];
  }
  for (int64_t& extent : shape) {
    if (extent == -1) extent = product(x.shape) / -product(shape);
  }
  if (product(shape) != product(x.shape)) fail("Reshape to another number of elements");
  x.shape = shape;
  return x;
}

Array slice(const Array& x, const Ints& starts, const Ints& ends, const Ints& axes) {
  Ints first(x.shape.size(), 0), shape = x.shape;
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = axis_of(axes[i], x.shape);
    const auto bound = [&](int64_t value) {
      return std::clamp<int64_t>(value < 0 ? value + x.shape[axis] : value, 0, x.shape[axis]);
    };
    first[axis] = bound(starts[i]);
    shape[axis] = std::max<int64_t>(0, bound(ends[i]) - first[axis]);
  }
  Array result = array_of(shape, x.integer);
  const Ints strides = strides_of(x.shape);
  size_t i = 0;
  for_each_index(shape, [&](const Ints& at) {
    int64_t offset = 0;
    for (size_t axis = 0; axis < at.size(); ++axis) offset += strides[axis] * (first[axis] + at[axis]);
    result.values[i++] = x.values[static_cast<size_t>(offset)];
  });
  return result;
}

Array concat(const Arrays& parts, int64_t given_axis) {
  const size_t axis = axis_of(given_axis, parts.front()->shape);
  Ints shape = parts.front()->shape;
  shape[axis] = 0;
  for (const Array* part : parts) shape[axis] += part->shape[axis];
  Array result = array_of(shape, parts.front()->integer);
  const int64_t outer = product(shape, 0, axis);
  double* to = result.values.data();
  for (int64_t i = 0; i < outer; ++i) {
    for (const Array* part : parts) {
      const int64_t size = product(part->shape, axis, part->shape.size());
      to = std::copy_n(part->values.data() + i * size, size, to);
    }
  }
  if (to != result.values.data() + result.values.size()) fail("Concat of other sizes");
  return result;
}

Array gather(const Array& x, const Array& index, int64_t given_axis) {
  const size_t axis = axis_of(given_axis, x.shape);
  Ints shape(x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  shape.insert(shape.end(), index.shape.begin(), index.shape.end());
  shape.insert(shape.end(), x.shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.shape.end());
  Array result = array_of(shape, x.integer);
  const int64_t outer = product(x.shape, 0, axis), inner = product(x.shape, axis + 1, x.shape.size());
  double* to = result.values.data();
  for (int64_t i = 0; i < outer; ++i) {
    for (const double row : index.values) {
      if (row < 0 || row >= static_cast<double>(x.shape[axis])) fail("Gather beyond the end");
      to = std::copy_n(x.values.data() + (i * x.shape[axis] + static_cast<int64_t>(row)) * inner, inner, to);
    }
  }
  return result;
}

Array pad(const Array& x, const Ints& pads) {
  const size_t rank = x.shape.size();
  Ints shape = x.shape;
  for (size_t i = 0; i < rank; ++i) shape[i] += pads[i] + pads[rank + i];
  Array result = array_of(shape, x.integer);
  const Ints strides = strides_of(shape);
  size_t i = 0;
  for_each_index(x.shape, [&](const Ints& at) {
    int64_t offset = 0;
    for (size_t axis = 0; axis < rank; ++axis) offset += strides[axis] * (at[axis] + pads[axis]);
    result.values[static_cast<size_t>(offset)] = x.values[i++];
  });
  return result;
}

// Calls with each row along an axis: its first element and the distance of its elements.
void for_each_row(Array& x, size_t axis, const std::function<void(double* first, int64_t step)>& action) {
  const int64_t outer = product(x.shape, 0, axis), inner = product(x.shape, axis + 1, x.shape.size());
  for (int64_t i = 0; i < outer; ++i) {
    for (int64_t j = 0; j < inner; ++j) action(x.values.data() + i * x.shape[axis] * inner + j, inner);
  }
}

// One value for each row.
Array reduced(Array x, size_t axis, bool keep, const std::function<double(const std::vector<double>&)>& function) {
  Array result = array_of([&] {
    Ints shape = x.shape;
    shape[axis] = 1;
    return shape;
  }());
  size_t i = 0;
  for_each_row(x, axis, [&](const double* first, int64_t step) {
    std::vector<double> row;
    for (int64_t k = 0; k < x.shape[axis]; ++k) row.push_back(first[k * step]);
    result.values[i++] = function(row);
  });
  if (!keep) result.shape.erase(result.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  return result;
}

Array softmax(Array x, int64_t axis) {
  const size_t at = axis_of(axis, x.shape);
  const int64_t count = x.shape[at];
  for_each_row(x, at, [&](double* row, int64_t step) {
    double largest = row[0], sum = 0;
    for (int64_t k = 0; k < count; ++k) largest = std::max(largest, row[k * step]);
    for (int64_t k = 0; k < count; ++k) sum += row[k * step] = std::exp(row[k * step] - largest);
    for (int64_t k = 0; k < count; ++k) row[k * step] /= sum;
  });
  return x;
}

Array layer_norm(Array x, const Array& gamma, const Array* beta, double eps) {
  const int64_t count = x.shape.back();
  for_each_row(x, x.shape.size() - 1, [&](double* row, int64_t) {
    double mean = 0, variance = 0;
    for (int64_t k = 0; k < count; ++k) mean += row[k] / static_cast<double>(count);
    for (int64_t k = 0; k < count; ++k) variance += (row[k] - mean) * (row[k] - mean) / static_cast<double>(count);
    for (int64_t k = 0; k < count; ++k) {
      const auto i = static_cast<size_t>(k);
      row[k] = (row[k] - mean) / std::sqrt(variance + eps) * gamma.values[i] + (beta ? beta->values[i] : 0);
    }
  });
  return x;
}

// x [B, C, h, w], weight [out, C / group, kh, kw]
Array convolution(const Array& x, const Array& weight, const Array* bias, const Node& node) {
  const Ints pads = ints_of(node, "pads"), strides = ints_of(node, "strides");
  const int64_t group = int_of(node, "group", 1), each = weight.shape[1], out_each = weight.shape[0] / group;
  const Array padded = pad(x, {0, 0, pads[0], pads[1], 0, 0, pads[2], pads[3]});
  const int64_t height = padded.shape[2], width = padded.shape[3], kh = weight.shape[2], kw = weight.shape[3];
  Array result = array_of({x.shape[0], weight.shape[0], (height - kh) / strides[0] + 1, (width - kw) / strides[1] + 1});
  size_t i = 0;
  for_each_index(result.shape, [&](const Ints& at) {
    double sum = bias ? bias->values[static_cast<size_t>(at[1])] : 0;
    const int64_t first = at[1] / out_each * each;
    for (int64_t c = 0; c < each; ++c) {
      for (int64_t v = 0; v < kh; ++v) {
        for (int64_t u = 0; u < kw; ++u) {
          const int64_t y = at[2] * strides[0] + v, from = at[3] * strides[1] + u;
          sum +=
              padded.values[static_cast<size_t>(((at[0] * padded.shape[1] + first + c) * height + y) * width + from)] *
              weight.values[static_cast<size_t>(((at[1] * each + c) * kh + v) * kw + u)];
        }
      }
    }
    result.values[i++] = sum;
  });
  return result;
}

// Linear, of the last two axes.
Array resized(const Array& x, const Ints& sizes, bool align_corners) {
  Array result = array_of(sizes);
  const int64_t height = x.shape[2], width = x.shape[3];
  struct Taps {
    int64_t first, second;
    double part;
  };
  const auto taps = [align_corners](int64_t at, int64_t from, int64_t to) {
    const auto index = static_cast<double>(at), in = static_cast<double>(from), out = static_cast<double>(to);
    const double position = align_corners ? index * (in - 1) / std::max(out - 1, 1.0) : (index + 0.5) * in / out - 0.5;
    const double inside = std::clamp(position, 0.0, static_cast<double>(from - 1));
    const auto first = static_cast<int64_t>(std::floor(inside));
    return Taps{first, std::min(first + 1, from - 1), inside - static_cast<double>(first)};
  };
  size_t i = 0;
  for_each_index(sizes, [&](const Ints& at) {
    const Taps y = taps(at[2], height, sizes[2]), u = taps(at[3], width, sizes[3]);
    const double* plane = x.values.data() + (at[0] * x.shape[1] + at[1]) * height * width;
    const auto row = [&](int64_t v) {
      return plane[v * width + u.first] * (1 - u.part) + plane[v * width + u.second] * u.part;
    };
    result.values[i++] = row(y.first) * (1 - y.part) + row(y.second) * y.part;
  });
  return result;
}

// Bilinear, zeros outside, corners not aligned: the default of every attribute.
Array sampled(const Array& x, const Array& grid, const Node& node) {
  if (!node.texts.empty() || !node.numbers.empty()) fail("GridSample with attributes");
  const int64_t channels = x.shape[1], height = x.shape[2], width = x.shape[3];
  Array result = array_of({x.shape[0], channels, grid.shape[1], grid.shape[2]});
  size_t i = 0;
  for_each_index(result.shape, [&](const Ints& at) {
    const auto place = static_cast<size_t>(2 * ((at[0] * grid.shape[1] + at[2]) * grid.shape[2] + at[3]));
    const double u = ((grid.values[place] + 1) * static_cast<double>(width) - 1) / 2,
                 v = ((grid.values[place + 1] + 1) * static_cast<double>(height) - 1) / 2;
    double sum = 0;
    for (int64_t row = 0; row < height; ++row) {
      for (int64_t column = 0; column < width; ++column) {
        const double down = 1 - std::abs(v - static_cast<double>(row)),
                     across = 1 - std::abs(u - static_cast<double>(column));
        if (down > 0 && across > 0)
          sum += down * across *
                 x.values[static_cast<size_t>(((at[0] * channels + at[1]) * height + row) * width + column)];
      }
    }
    result.values[i++] = sum;
  });
  return result;
}

Array shape_array(const Array& x, const Node& node) {
  const int64_t rank = static_cast<int64_t>(x.shape.size());
  const int64_t first = int_of(node, "start", 0), last = int_of(node, "end", rank);
  Array result = array_of({last - first}, true);
  for (int64_t i = first; i < last; ++i)
    result.values[static_cast<size_t>(i - first)] = static_cast<double>(x.shape[static_cast<size_t>(i)]);
  return result;
}

Array squeezed(Array x, const Arrays& in, bool add) {
  Ints axes = in.size() > 1 ? ints_of(*in[1]) : Ints{};
  if (add) {
    for (const int64_t axis : axes) x.shape.insert(x.shape.begin() + axis, 1);
  } else {
    std::erase(x.shape, 1);
  }
  return x;
}

double quotient(double a, double b) { return a / b; }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

Array where(const Array& condition, const Array& yes, const Array& no) {
  const Array one = binary(condition, yes, [](double c, double y) { return c != 0 ? y : 0; });
  const Array other = binary(condition, no, [](double c, double n) { return c != 0 ? 0 : n; });
  return binary(one, other, [](double a, double b) { return a + b; });
}

Array mean(const Arrays& in, const Node& node) {
  const Ints axes = in.size() > 1 ? ints_of(*in[1]) : ints_of(node, "axes");
  return reduced(*in[0], axis_of(axes.at(0), in[0]->shape), int_of(node, "keepdims", 1) != 0,
                 [](const std::vector<double>& row) {
                   double sum = 0;
                   for (const double value : row) sum += value;
                   return sum / static_cast<double>(row.size());
                 });
}

Array sum(const Arrays& in, const Node& node) {
  return reduced(*in[0], axis_of(ints_of(*in[1]).at(0), in[0]->shape), int_of(node, "keepdims", 1) != 0,
                 [](const std::vector<double>& row) { return std::accumulate(row.begin(), row.end(), 0.0); });
}

// Without padding, of windows that do not overlap.
Array max_pool(const Array& x, const Node& node) {
  const Ints kernel = ints_of(node, "kernel_shape");
  if (ints_of(node, "strides") != kernel) fail("MaxPool of another stride");
  const int64_t height = x.shape[2], width = x.shape[3], rows = height / kernel[0], columns = width / kernel[1];
  Array result{{x.shape[0], x.shape[1], rows, columns}, {}};
  for (int64_t at = 0; at < x.shape[0] * x.shape[1] * rows * columns; ++at) {
    const int64_t plane = at / (rows * columns), row = at / columns % rows, column = at % columns;
    double largest = -std::numeric_limits<double>::infinity();
    for (int64_t y = row * kernel[0]; y < (row + 1) * kernel[0]; ++y)
      for (int64_t u = column * kernel[1]; u < (column + 1) * kernel[1]; ++u)
        largest = std::max(largest, x.values[static_cast<size_t>((plane * height + y) * width + u)]);
    result.values.push_back(largest);
  }
  return result;
}

Array first_largest(const Arrays& in, const Node& node) {
  Array result = reduced(
      *in[0], axis_of(int_of(node, "axis", 0), in[0]->shape), int_of(node, "keepdims", 1) != 0,
      [](const std::vector<double>& row) { return static_cast<double>(std::ranges::max_element(row) - row.begin()); });
  result.integer = true;
  return result;
}

Array range(double first, double last, double step) {
  Array result{{0}, {}, true};
  for (; first < last; first += step) result.values.push_back(first);
  result.shape = {static_cast<int64_t>(result.values.size())};
  return result;
}

Array cast(Array x, int64_t type) {
  x.integer = type == 7;
  return x.integer ? unary(x, [](double v) { return std::trunc(v); }) : x;
}

// Scales of an axis of two.
Array dequantized(const Array& x, const Array& scale, int64_t axis) {
  const Array scales{axis == 1 ? Ints{1, scale.shape[0]} : Ints{scale.shape[0], 1}, scale.values};
  return binary(x, scales, [](double a, double b) { return a * b; });
}

using Rule = std::function<Array(const Arrays&, const Node&)>;

Rule of_two(double (*function)(double, double)) {
  return [=](const Arrays& in, const Node&) { return binary(*in[0], *in[1], function); };
}
Rule of_one(double (*function)(double)) {
  return [=](const Arrays& in, const Node&) { return unary(*in[0], function); };
}

const std::map<std::string, Rule>& rules() {
  static const std::map<std::string, Rule> table{
      {"Add", of_two([](double a, double b) { return a + b; })},
      {"Sub", of_two([](double a, double b) { return a - b; })},
      {"Mul", of_two([](double a, double b) { return a * b; })},
      {"Max", of_two([](double a, double b) { return std::max(a, b); })},
      {"Greater", of_two([](double a, double b) { return a > b ? 1.0 : 0.0; })},
      {"GreaterOrEqual", of_two([](double a, double b) { return a >= b ? 1.0 : 0.0; })},
      {"Equal", of_two([](double a, double b) { return a == b ? 1.0 : 0.0; })},
      {"Div",
       [](const Arrays& in, const Node&) {
         const Array result = binary(*in[0], *in[1], quotient);
         return result.integer ? unary(result, [](double v) { return std::trunc(v); }) : result;
       }},
      {"Erf", of_one([](double v) { return std::erf(v); })},
      {"Tanh", of_one([](double v) { return std::tanh(v); })},
      {"Sin", of_one([](double v) { return std::sin(v); })},
      {"Cos", of_one([](double v) { return std::cos(v); })},
      {"Sqrt", of_one([](double v) { return std::sqrt(v); })},
      {"Sigmoid", of_one(sigmoid)},
      {"Relu", of_one([](double v) { return std::max(v, 0.0); })},
      {"Elu", of_one([](double v) { return v > 0 ? v : std::expm1(v); })},
      {"Identity", [](const Arrays& in, const Node&) { return *in[0]; }},
      {"Cast", [](const Arrays& in, const Node& node) { return cast(*in[0], int_of(node, "to", 1)); }},
      {"MatMul", [](const Arrays& in, const Node&) { return matmul(*in[0], *in[1]); }},
      {"Transpose", [](const Arrays& in, const Node& node) { return transpose(*in[0], ints_of(node, "perm")); }},
      {"Reshape", [](const Arrays& in, const Node&) { return reshape(*in[0], ints_of(*in[1])); }},
      {"Slice",
       [](const Arrays& in, const Node&) { return slice(*in[0], ints_of(*in[1]), ints_of(*in[2]), ints_of(*in[3])); }},
      {"Concat", [](const Arrays& in, const Node& node) { return concat(in, int_of(node, "axis", 0)); }},
      {"Gather", [](const Arrays& in, const Node& node) { return gather(*in[0], *in[1], int_of(node, "axis", 0)); }},
      {"Shape", [](const Arrays& in, const Node& node) { return shape_array(*in[0], node); }},
      {"Expand",
       [](const Arrays& in, const Node&) {
         return binary(*in[0], array_of(ints_of(*in[1])), [](double a, double) { return a; });
       }},
      {"Pad", [](const Arrays& in, const Node&) { return pad(*in[0], ints_of(*in[1])); }},
      {"MaxPool", [](const Arrays& in, const Node& node) { return max_pool(*in[0], node); }},
      {"ReduceMean", mean},
      {"ReduceSum", sum},
      {"GridSample", [](const Arrays& in, const Node& node) { return sampled(*in[0], *in[1], node); }},
      {"Softmax", [](const Arrays& in, const Node& node) { return softmax(*in[0], int_of(node, "axis", -1)); }},
      {"LayerNormalization",
       [](const Arrays& in, const Node& node) {
         return layer_norm(*in[0], *in[1], in.size() > 2 ? in[2] : nullptr, node.numbers.at("epsilon").front());
       }},
      {"ArgMax", first_largest},
      {"Unsqueeze", [](const Arrays& in, const Node&) { return squeezed(*in[0], in, true); }},
      {"Squeeze", [](const Arrays& in, const Node&) { return squeezed(*in[0], in, false); }},
      {"Range",
       [](const Arrays& in, const Node&) { return range(in[0]->values[0], in[1]->values[0], in[2]->values[0]); }},
      {"Where", [](const Arrays& in, const Node&) { return where(*in[0], *in[1], *in[2]); }},
      {"DequantizeLinear",
       [](const Arrays& in, const Node& node) { return dequantized(*in[0], *in[1], int_of(node, "axis", 1)); }},
      {"Conv", [](const Arrays& in,
                  const Node& node) { return convolution(*in[0], *in[1], in.size() > 2 ? in[2] : nullptr, node); }},
      {"Resize", [](const Arrays& in, const Node& node) {
         const std::string& corners = node.texts.at("coordinate_transformation_mode");
         if (node.texts.at("mode") != "linear" || (corners != "half_pixel" && corners != "align_corners"))
           fail("Resize of another mode");
         return resized(*in[0], ints_of(*in[3]), corners == "align_corners");
       }}};
  return table;
}

}  // namespace

std::map<std::string, OnnxArray> run_onnx(const OnnxFile& file, const std::map<std::string, OnnxArray>& inputs) {
  std::map<std::string, Array> values(inputs.begin(), inputs.end());
  for (const auto& [name, constant] : file.constants)
    values[name] = {constant.shape, constant.values, constant.type == 7};
  for (const Node& node : file.nodes) {
    Arrays in;
    for (const std::string& input : node.inputs) in.push_back(input.empty() ? nullptr : &values.at(input));
    const auto rule = rules().find(node.op);
    if (rule == rules().end()) fail("the operator " + node.op);
    values[node.output] = rule->second(in, node);
  }
  std::map<std::string, Array> outputs;
  for (const OnnxFile::Value& output : file.outputs) outputs[output.name] = values.at(output.name);
  return outputs;
}

}  // namespace vitrail::testing
