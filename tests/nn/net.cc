#include "tests/nn/net.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/philox.h"
#include "nn/initializer.h"
#include "nn/layers/batch_norm2d.h"
#include "nn/layers/conv2d.h"
#include "nn/layers/linear.h"
#include "nn/layers/residual.h"
#include "nn/layers/residual_block.h"
#include "nn/layers/stateless.h"
#include "tests/reference/batch_norm.h"
#include "tests/reference/bias.h"
#include "tests/reference/conv2d.h"
#include "tests/reference/elements.h"
#include "tests/reference/linear.h"
#include "tests/reference/pool2d.h"
#include "tests/reference/softmax_cross_entropy.h"

namespace ringlet::nn {

namespace {

namespace reference = test::reference;

using Doubles = std::vector<double>;

Conv2dOptions options_of(const ConvSpec& conv) {
  return {.in_channels = conv.in_channels,
          .out_channels = conv.out_channels,
          .kernel = conv.kernel,
          .spec = conv.spec,
          .bias = conv.bias};
}

void add_layers(Sequential& model, const std::vector<NetLayer>& layers);

/// Adds the layer that a spec describes.
struct Builder {
  Sequential& model;
  std::string name;

  void operator()(const ConvSpec& s) const { model.add<Conv2d>(name, options_of(s)); }
  void operator()(const LinearSpec& s) const {
    model.add<Linear>(name, s.in_features, s.out_features);
  }
  void operator()(const ReluSpec&) const { model.add<ReLU>(name); }
  void operator()(const AvgSpec& s) const { model.add<AvgPool2d>(name, s.spec); }
  void operator()(const MaxSpec& s) const { model.add<MaxPool2d>(name, s.spec); }
  void operator()(const FlattenSpec&) const { model.add<Flatten>(name); }
  void operator()(const DropSpec& s) const { model.add<Dropout>(name, s.probability); }
  void operator()(const NormSpec& s) const { model.add<BatchNorm2d>(name, s.channels); }
  void operator()(const GlobalAvgSpec&) const { model.add<AdaptiveAvgPool2d>(name); }
  void operator()(const BlockSpec& s) const {
    auto& block = model.add<ResidualBlock>(name, "bn", s.channels);
    add_layers(block.body(), s.body);
    add_layers(block.downsample(), s.downsample);
  }
  void operator()(const ResidualSpec& s) const {
    auto& block = model.add<Residual>(name);
    add_layers(block.body(), s.body);
    add_layers(block.shortcut(), s.shortcut);
  }
};

void add_layers(Sequential& model, const std::vector<NetLayer>& layers) {
  for (const NetLayer& layer : layers) {
    std::visit(Builder{model, layer.name.substr(layer.name.rfind('.') + 1)}, layer.spec);
  }
}

Doubles sum(Doubles a, const Doubles& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

constexpr double kEpsilon = 1e-5;

AvgSpec whole_image(const Shape& x) {
  const Extent2 all{static_cast<int>(x[2]), static_cast<int>(x[3])};
  return {{.kernel = all, .stride = all}};
}

Shape weight_shape(const ConvSpec& s) {
  return {s.out_channels, s.in_channels / s.spec.groups, s.kernel.h, s.kernel.w};
}

/// One value on its way through the net.
struct Activation64 {
  Shape shape;
  Doubles data;
};

/// Forward of each kind of layer; notes the distance from the nearest kink.
class Forward {
 public:
  Forward(const Values& parameters, const StepContext& context)
      : parameters_(parameters), context_(context) {}

  /// x, and what each layer makes of it.
  std::vector<Activation64> run(const std::vector<NetLayer>& layers, const Activation64& x) {
    std::vector<Activation64> values{x};
    for (const NetLayer& layer : layers) {
      name_ = layer.name;
      values.push_back(
          std::visit([&](const auto& spec) { return (*this)(spec, values.back()); }, layer.spec));
    }
    return values;
  }
  double distance_from_kink = std::numeric_limits<double>::infinity();

  Activation64 operator()(const ConvSpec& s, const Activation64& x) const {
    const Shape shape = conv2d_output_shape(s.spec, x.shape, weight_shape(s));
    Doubles y =
        reference::conv2d_forward(s.spec, x.shape, weight_shape(s), x.data, parameter("weight"));
    return {shape, s.bias ? reference::bias_forward(shape, std::move(y), parameter("bias")) : y};
  }
  Activation64 operator()(const LinearSpec& s, const Activation64& x) const {
    const Shape shape{x.shape[0], s.out_features};
    const Doubles y = reference::linear_forward({x.shape[0], s.in_features, s.out_features}, x.data,
                                                parameter("weight"));
    return {shape, reference::bias_forward(shape, y, parameter("bias"))};
  }
  Activation64 operator()(const ReluSpec&, const Activation64& x) {
    for (const double value : x.data) near(std::abs(value));
    return {x.shape, reference::relu_forward(x.data)};
  }
  Activation64 operator()(const AvgSpec& s, const Activation64& x) const {
    return {pool2d_output_shape(s.spec, x.shape),
            reference::avg_pool2d_forward(s.spec, x.shape, x.data)};
  }
  Activation64 operator()(const MaxSpec& s, const Activation64& x) {
    for (const reference::Window& window : reference::windows_of(s.spec, x.shape)) {
      Doubles values;
      for (const auto pixel : window.pixels) values.push_back(x.data[at(pixel)]);
      std::sort(values.rbegin(), values.rend());
      if (values.size() > 1) near(values[0] - values[1]);
    }
    return {pool2d_output_shape(s.spec, x.shape),
            reference::max_pool2d_forward(s.spec, x.shape, x.data)};
  }
  Activation64 operator()(const FlattenSpec&, const Activation64& x) const {
    return {{x.shape[0], x.shape.count_per_sample()}, x.data};
  }
  Activation64 operator()(const DropSpec& s, const Activation64& x) const {
    if (!context_.training) return x;
    return {x.shape, reference::dropout(spec_of(s), x.shape.count_per_sample(), x.data)};
  }
  Activation64 operator()(const NormSpec&, const Activation64& x) const {
    return {x.shape,
            reference::batch_norm_forward(x.shape, reference::moments_of(x.shape, x.data), kEpsilon,
                                          parameter("weight"), parameter("bias"), x.data)};
  }
  Activation64 operator()(const GlobalAvgSpec&, const Activation64& x) const {
    return (*this)(whole_image(x.shape), x);
  }
  Activation64 operator()(const BlockSpec& s, const Activation64& x) {
    const std::string block = name_;
    const Activation64 y = run(s.body, x).back();
    const Activation64 shortcut = run(s.downsample, x).back();
    name_ = block + ".bn";
    return (*this)(ReluSpec{},
                   {y.shape, sum((*this)(NormSpec{s.channels}, y).data, shortcut.data)});
  }
  Activation64 operator()(const ResidualSpec& s, const Activation64& x) {
    const Activation64 y = run(s.body, x).back();
    return {y.shape, sum(y.data, run(s.shortcut, x).back().data)};
  }

  DropoutSpec spec_of(const DropSpec& s) const {
    const PhiloxBlock words = philox(context_.seed, 0, hash_of(name_ + "."));
    return {s.probability, std::uint64_t{words[0]} << 32 | words[1],
            sample_number({context_.epoch, context_.first_sample})};
  }
  void set_name(const std::string& name) { name_ = name; }
  const Doubles& parameter(const char* which) const { return parameters_.at(name_ + "." + which); }

 private:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  /// A distance of exactly 0 is no accident: all of a sum's terms are 0, in float as in double (a
  /// tie of zeros behind a ReLU, a patch that dropout has cleared), and both take the same side.
  void near(double distance) {
    if (distance > 0) distance_from_kink = std::min(distance_from_kink, distance);
  }

  const Values& parameters_;
  StepContext context_;
  std::string name_;
};

/// Backward of each kind of layer, from its input x, its output y and the gradient dy.
class BackwardPass {
 public:
  BackwardPass(Forward& forward, Values& gradients) : forward_(forward), gradients_(gradients) {}

  /// The gradient of the first of `values` (those that Forward::run gave) from that of the last.
  Doubles run(const std::vector<NetLayer>& layers, const std::vector<Activation64>& values,
              Doubles gradient) {
    for (std::size_t i = layers.size(); i-- > 0;) {
      name_ = layers[i].name;
      forward_.set_name(name_);
      gradient = std::visit(
          [&](const auto& spec) { return (*this)(spec, values[i], values[i + 1], gradient); },
          layers[i].spec);
    }
    return gradient;
  }

  Doubles operator()(const ConvSpec& s, const Activation64& x, const Activation64& y,
                     const Doubles& dy) {
    const Shape w = weight_shape(s);
    if (s.bias) gradients_[name_ + ".bias"] = reference::bias_backward(y.shape, dy);
    gradients_[name_ + ".weight"] =
        reference::conv2d_backward_filter(s.spec, x.shape, w, x.data, dy);
    return reference::conv2d_backward_data(s.spec, x.shape, w, forward_.parameter("weight"), dy);
  }
  Doubles operator()(const LinearSpec& s, const Activation64& x, const Activation64& y,
                     const Doubles& dy) {
    const reference::LinearSize size{x.shape[0], s.in_features, s.out_features};
    gradients_[name_ + ".bias"] = reference::bias_backward(y.shape, dy);
    gradients_[name_ + ".weight"] = reference::linear_backward_weight(size, x.data, dy);
    return reference::linear_backward_data(size, forward_.parameter("weight"), dy);
  }
  Doubles operator()(const ReluSpec&, const Activation64&, const Activation64& y,
                     const Doubles& dy) {
    return reference::relu_backward(y.data, dy);
  }
  Doubles operator()(const AvgSpec& s, const Activation64& x, const Activation64&,
                     const Doubles& dy) {
    return reference::avg_pool2d_backward(s.spec, x.shape, dy);
  }
  Doubles operator()(const MaxSpec& s, const Activation64& x, const Activation64&,
                     const Doubles& dy) {
    return reference::max_pool2d_backward(s.spec, x.shape, x.data, dy);
  }
  Doubles operator()(const FlattenSpec&, const Activation64&, const Activation64&,
                     const Doubles& dy) {
    return dy;
  }
  Doubles operator()(const DropSpec& s, const Activation64& x, const Activation64&,
                     const Doubles& dy) {
    return reference::dropout(forward_.spec_of(s), x.shape.count_per_sample(), dy);
  }
  Doubles operator()(const NormSpec&, const Activation64& x, const Activation64&,
                     const Doubles& dy) {
    auto gradient =
        reference::batch_norm_backward(x.shape, reference::moments_of(x.shape, x.data), kEpsilon,
                                       forward_.parameter("weight"), x.data, dy);
    gradients_[name_ + ".weight"] = gradient.weight;
    gradients_[name_ + ".bias"] = gradient.bias;
    return gradient.dx;
  }
  Doubles operator()(const GlobalAvgSpec&, const Activation64& x, const Activation64& y,
                     const Doubles& dy) {
    return (*this)(whole_image(x.shape), x, y, dy);
  }
  Doubles operator()(const BlockSpec& s, const Activation64& x, const Activation64& y,
                     const Doubles& dy) {
    const std::string block = name_;
    const Doubles dz = (*this)(ReluSpec{}, x, y, dy);
    const auto body = forward_.run(s.body, x);
    forward_.set_name(name_ = block + ".bn");
    const Doubles through_norm = (*this)(NormSpec{s.channels}, body.back(), y, dz);
    const Doubles through_body = run(s.body, body, through_norm);
    return sum(through_body, run(s.downsample, forward_.run(s.downsample, x), dz));
  }
  Doubles operator()(const ResidualSpec& s, const Activation64& x, const Activation64&,
                     const Doubles& dy) {
    const Doubles through_body = run(s.body, forward_.run(s.body, x), dy);
    return sum(through_body, run(s.shortcut, forward_.run(s.shortcut, x), dy));
  }

 private:
  Forward& forward_;
  Values& gradients_;
  std::string name_;
};

}  // namespace

std::unique_ptr<Sequential> make_sequential(const Net& net) {
  auto model = std::make_unique<Sequential>();
  add_layers(*model, net.layers);
  return model;
}

Reference run_reference(const Net& net, const Values& parameters, const std::vector<double>& x,
                        const std::vector<std::int32_t>& labels, double seed,
                        const StepContext& context) {
  Forward forward(parameters, context);
  const auto values =
      forward.run(net.layers, {net.sample.with_batch(static_cast<std::int64_t>(labels.size())), x});

  const Activation64& logits = values.back();
  Reference result;
  result.distance_from_kink = forward.distance_from_kink;
  result.loss = reference::softmax_cross_entropy_forward(logits.shape[1], logits.data, labels);
  BackwardPass(forward, result.gradients)
      .run(net.layers, values,
           reference::softmax_cross_entropy_backward(logits.shape[1], logits.data, labels, seed));
  return result;
}

Net lenet_net(int extent) {
  const int side = ((extent - 2) / 2 - 4) / 2;
  return {"lenet",
          {1, 1, extent, extent},
          {{"conv1", ConvSpec{1, 20, {3, 3}}},
           {"relu1", ReluSpec{}},
           {"pool1", AvgSpec{}},
           {"conv2", ConvSpec{20, 50, {5, 5}}},
           {"relu2", ReluSpec{}},
           {"pool2", AvgSpec{}},
           {"flatten", FlattenSpec{}},
           {"fc1", LinearSpec{50 * side * side, 128}},
           {"relu3", ReluSpec{}},
           {"fc2", LinearSpec{128, 10}}}};
}

std::vector<Net> test_nets() {
  const Net mlp{"mlp",
                {1, 1, 6, 5},
                {{"flatten", FlattenSpec{}},
                 {"fc1", LinearSpec{30, 256}},
                 {"relu1", ReluSpec{}},
                 {"fc2", LinearSpec{256, 128}},
                 {"relu2", ReluSpec{}},
                 {"fc3", LinearSpec{128, 10}}}};
  const Net varied{
      "varied",
      {1, 2, 9, 8},
      {{"conv1", ConvSpec{2, 4, {3, 3}, {.stride = {2, 1}, .padding = {1, 2}}}},
       {"relu1", ReluSpec{}},
       {"pool1", MaxSpec{{.kernel = {3, 2}, .stride = {1, 2}, .padding = {1, 1}}}},
       {"drop1", DropSpec{0.25F}},
       {"conv2",
        ConvSpec{4, 6, {2, 3}, {.padding = {1, 1}, .dilation = {2, 1}, .groups = 2}, false}},
       {"pool2", AvgSpec{{.kernel = {3, 2},
                          .stride = {2, 2},
                          .padding = {1, 1},
                          .ceil_mode = true,
                          .count_include_pad = false}}},
       {"relu2", ReluSpec{}},
       {"flatten", FlattenSpec{}},
       {"fc1", LinearSpec{6 * 3 * 4, 9}},
       {"relu3", ReluSpec{}},
       {"drop2", DropSpec{0.5F}},
       {"fc2", LinearSpec{9, 3}}}};
  // Convolution, ReLU and average pooling in a row, with and without what their fused form takes.
  const Net pooled{"pooled",
                   {1, 1, 7, 9},
                   {{"conv1", ConvSpec{1, 4, {3, 3}, {.padding = {1, 1}}, false}},
                    {"relu1", ReluSpec{}},
                    {"pool1", AvgSpec{}},
                    {"conv2", ConvSpec{4, 4, {3, 3}, {.padding = {1, 1}, .groups = 2}}},
                    {"relu2", ReluSpec{}},
                    {"pool2", AvgSpec{{.ceil_mode = true}}},
                    {"conv3", ConvSpec{4, 6, {1, 1}}},
                    {"relu3", ReluSpec{}},
                    {"pool3", AvgSpec{{.padding = {1, 1}}}},
                    {"conv4", ConvSpec{6, 6, {1, 1}}},
                    {"relu4", ReluSpec{}},
                    {"pool4", AvgSpec{{.stride = {1, 1}}}},
                    {"flatten", FlattenSpec{}},
                    {"fc", LinearSpec{6, 5}}}};
  // Blocks with a shortcut and without, one inside the other, and a dropout in a branch.
  const Net residual{
      "residual",
      {1, 1, 6, 6},
      {{"block1",
        ResidualSpec{{{"block1.body.conv1", ConvSpec{1, 3, {3, 3}, {.padding = {1, 1}}}},
                      {"block1.body.relu", ReluSpec{}},
                      {"block1.body.pool", AvgSpec{}},
                      {"block1.body.conv2", ConvSpec{3, 4, {3, 3}, {.padding = {1, 1}}, false}}},
                     {{"block1.shortcut.conv", ConvSpec{1, 4, {1, 1}, {.stride = {2, 2}}}}}}},
       {"relu1", ReluSpec{}},
       {"block2", ResidualSpec{{{"block2.body.conv", ConvSpec{4, 4, {3, 3}, {.padding = {1, 1}}}},
                                {"block2.body.inner",
                                 ResidualSpec{{{"block2.body.inner.body.relu", ReluSpec{}},
                                               {"block2.body.inner.body.drop", DropSpec{0.25F}}},
                                              {}}}},
                               {}}},
       {"flatten", FlattenSpec{}},
       {"fc1", LinearSpec{36, 7}},
       {"block3",
        ResidualSpec{{{"block3.body.relu", ReluSpec{}}, {"block3.body.fc", LinearSpec{7, 7}}}, {}}},
       {"fc2", LinearSpec{7, 5}}}};
  // As resnet18 is built: a block that passes x on, and one that halves the image.
  const Net normed{
      "normed",
      {1, 2, 7, 6},
      {{"conv1", ConvSpec{2, 4, {3, 3}, {.padding = {1, 1}}, false}},
       {"bn1", NormSpec{4}},
       {"relu1", ReluSpec{}},
       {"pool1", MaxSpec{{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}}},
       {"block1", BlockSpec{{{"block1.conv1", ConvSpec{4, 4, {3, 3}, {.padding = {1, 1}}, false}},
                             {"block1.bn1", NormSpec{4}},
                             {"block1.relu", ReluSpec{}},
                             {"block1.conv2", ConvSpec{4, 4, {3, 3}, {.padding = {1, 1}}, false}}},
                            4,
                            {}}},
       {"block2",
        BlockSpec{
            {{"block2.conv1", ConvSpec{4, 6, {3, 3}, {.stride = {2, 2}, .padding = {1, 1}}, false}},
             {"block2.bn1", NormSpec{6}},
             {"block2.relu", ReluSpec{}},
             {"block2.conv2", ConvSpec{6, 6, {3, 3}, {.padding = {1, 1}}, false}}},
            6,
            {{"block2.downsample.0", ConvSpec{4, 6, {1, 1}, {.stride = {2, 2}}, false}},
             {"block2.downsample.1", NormSpec{6}}}}},
       {"avgpool", GlobalAvgSpec{}},
       {"flatten", FlattenSpec{}},
       {"fc", LinearSpec{6, 5}}}};
  return {mlp, lenet_net(14), pooled, residual, normed, varied};
}

}  // namespace ringlet::nn
