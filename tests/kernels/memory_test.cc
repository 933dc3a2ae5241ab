#include "kernels/memory.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace ringlet {
namespace {

TEST(Arena, GivesAlignedDisjointViews) {
  const auto device = open_device({});
  Arena arena(*device, 4096);
  const View a = arena.allocate({3});
  const View b = arena.allocate({100});
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.data()) % Arena::kAlignment, 0U);
  EXPECT_GE(b.f32() - a.f32(), 64);
  EXPECT_EQ(arena.high_water(), 256 + 512);
}

TEST(Arena, JoinsReleasedNeighboursAndUsesThemAgain) {
  const auto device = open_device({});
  Arena arena(*device, 4 * 256);
  const View a = arena.allocate({64});
  const View b = arena.allocate({64});
  const View c = arena.allocate({64});
  arena.release(a);
  arena.release(c);
  arena.release(b);
  EXPECT_EQ(arena.allocate({256}).data(), a.data());
}

TEST(Arena, SaysWhenItIsFull) {
  const auto device = open_device({});
  Arena arena(*device, 256);
  EXPECT_THROW(arena.allocate({65}), OutOfMemoryError);
  const View a = arena.allocate({64});
  EXPECT_THROW(arena.allocate({1}), OutOfMemoryError);
  arena.release(a);
  EXPECT_THROW(arena.release(a), ContractError);
  EXPECT_NO_THROW(arena.allocate({1}));
}

// A dry run without limit must foretell the capacity of the real run for any order of calls.
TEST(Arena, TheHighWaterMarkOfADryRunIsEnough) {
  const auto device = open_device({});
  const auto meta = open_device({DeviceKind::meta, 0});
  const auto play = [](Arena& arena) {
    std::mt19937 random(7);
    std::vector<View> live;
    for (int step = 0; step < 2000; ++step) {
      if (live.size() < 20 || random() % 2 == 0) {
        if (live.size() > 60) continue;
        live.push_back(arena.allocate({static_cast<std::int64_t>(random() % 5000)}));
      } else {
        const std::size_t chosen = random() % live.size();
        arena.release(live[chosen]);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(chosen));
      }
    }
  };
  Arena dry(*meta, Arena::kUnlimited);
  play(dry);
  Arena real(*device, dry.high_water());
  EXPECT_NO_THROW(play(real));
  EXPECT_EQ(real.high_water(), dry.high_water());
}

TEST(Storage, LanesRoundTheBatchUpToSixteen) {
  EXPECT_EQ(storage_count({17, 3, 2, 2}, Layout::lanes), 32 * 12);
  EXPECT_EQ(storage_count({17, 3, 2, 2}, Layout::nchw), 17 * 12);
  EXPECT_EQ(storage_count({0, 10}, Layout::lanes), 0);
}

TEST(Shape, RefusesMoreElementsThanCanBeCounted) {
  constexpr std::int64_t kMany = std::int64_t{1} << 40;
  EXPECT_EQ(Shape({kMany, 1, 4, 4}).count(), 16 * kMany);
  EXPECT_EQ(Shape({kMany, 0, kMany, kMany}).count(), 0);
  EXPECT_THROW((Shape{kMany, kMany}), ContractError);
  EXPECT_THROW((Shape{kMany, 3, 224, 224}), ContractError);
  EXPECT_THROW((void)Shape({1, 3, 224, 224}).with_batch(kMany), ContractError);
}

TEST(View, OfTheMetaDeviceHasNoAddressToReadFrom) {
  const auto meta = open_device({DeviceKind::meta, 0});
  Arena arena(*meta, Arena::kUnlimited);
  const View x = arena.allocate({3});
  EXPECT_FALSE(x.absent());
  EXPECT_THROW((void)x.data(), NoMemoryError);
  EXPECT_THROW((void)x.f32(), NoMemoryError);
  EXPECT_THROW((void)ConstView(x).f32(), NoMemoryError);
  EXPECT_NO_THROW(arena.release(x));
  const auto cpu = open_device({});
  EXPECT_NO_THROW((void)Tensor(*cpu, {3}).f32());
}

TEST(View, ReshapesOnlyWhereMemoryAllows) {
  const auto device = open_device({});
  const Tensor x(*device, {17, 3, 2, 2}, DType::f32, Layout::lanes);
  EXPECT_EQ(x.view().reshaped({17, 12}).shape(), Shape({17, 12}));
  EXPECT_THROW((void)x.view().reshaped({34, 6}), ContractError);
  EXPECT_THROW((void)x.view().reshaped({17, 13}), ContractError);
  const Tensor images(*device, {17, 3, 2, 2}, DType::f32, Layout::nhwc);
  EXPECT_EQ(images.view().reshaped({17, 3, 2, 2}).layout(), Layout::nhwc);
  EXPECT_THROW((void)images.view().reshaped({17, 12}), ContractError);  // of another order
  for (const Shape& shape : {Shape{17, 12, 1, 1}, Shape{17, 1, 3, 4}}) {
    const Tensor alike(*device, shape, DType::f32, Layout::nhwc);
    EXPECT_EQ(alike.view().reshaped({17, 12}).layout(), Layout::nchw);
  }
  EXPECT_THROW((void)storage_count({17, 12}, Layout::nhwc), ContractError);
}

}  // namespace
}  // namespace ringlet
