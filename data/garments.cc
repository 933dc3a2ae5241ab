#include "data/garments.h"

#include <array>

namespace ringlet::data {
namespace {

/// What the four garments with a torso and sleeves share, and where they differ.
struct Top {
  float shoulder;  // half widths
  float chest;
  float hem;
  float shoulder_y, hem_y;
  float sleeve_end;  // y of the cuff: short about -0.25, long about 0.7
  float reach;       // how far the cuff stands out sideways
};

Top random_top(Random& random, bool long_sleeves) {
  const float chest = random.between(0.40F, 0.54F);
  return {.shoulder = chest * random.between(0.9F, 1.05F),
          .chest = chest,
          .hem = chest * random.between(0.9F, 1.1F),
          .shoulder_y = random.between(-0.95F, -0.8F),
          .hem_y = random.between(0.75F, 0.95F),
          .sleeve_end = long_sleeves ? random.between(0.45F, 0.8F) : random.between(-0.4F, -0.1F),
          .reach = long_sleeves ? random.between(0.72F, 0.9F) : random.between(0.78F, 0.95F)};
}

void draw_top(Canvas& canvas, const Top& top, float tone) {
  const float armpit = top.shoulder_y + 0.45F;
  // Sleeves: the upper edge falls from the shoulder to the cuff, the lower one from the armpit.
  const float cuff = top.sleeve_end < 0.2F ? 0.02F : 0.16F;
  canvas.paint_both({top.shoulder_y, armpit, top.shoulder * 0.5F, top.shoulder, top.chest,
                     top.chest + (top.reach - top.chest) * 0.75F},
                    tone);
  canvas.paint_both(
      {armpit, top.sleeve_end, top.chest - 0.02F, top.chest + (top.reach - top.chest) * 0.75F,
       top.reach - cuff - 0.05F, top.reach + 0.06F},
      tone * 0.94F);
  // Torso, with a line of shade along the arms.
  canvas.paint({top.shoulder_y, armpit, -top.shoulder, top.shoulder, -top.chest, top.chest}, tone);
  canvas.paint({armpit, top.hem_y, -top.chest, top.chest, -top.hem, top.hem}, tone);
  canvas.paint_both(
      {armpit, top.hem_y, top.chest - 0.03F, top.chest + 0.05F, top.hem - 0.03F, top.hem + 0.05F},
      top.sleeve_end > 0.2F ? tone * 0.35F : tone * 0.9F);
}

void draw_neck(Canvas& canvas, const Top& top, float half_width, float depth) {
  const float y = top.shoulder_y;
  canvas.paint(
      {y - 0.05F, y + depth, -half_width, half_width, -half_width * 0.3F, half_width * 0.3F}, 0.0F);
}

void draw_t_shirt(Canvas& canvas, Random& random) {
  const Top top = random_top(random, false);
  draw_top(canvas, top, 1.0F);
  // Before the other one: arguments have no order of their own.
  const float depth = random.between(0.1F, 0.25F);
  draw_neck(canvas, top, random.between(0.18F, 0.3F), depth);
  if (random.chance(0.3F)) {  // a print on the chest
    const float size = random.between(0.12F, 0.28F);
    canvas.paint({-0.35F, -0.35F + 2 * size, -size, size, -size, size}, random.between(0.4F, 1.3F));
  }
}

void draw_trousers(Canvas& canvas, Random& random) {
  const float waist = random.between(0.26F, 0.36F), hip = waist + random.between(0.0F, 0.08F);
  const float cuff = random.between(0.14F, 0.26F), spread = random.between(0.0F, 0.18F);
  const float crotch = random.between(-0.5F, -0.2F), end = random.between(0.85F, 1.0F);
  canvas.paint({-0.98F, crotch, -waist, waist, -hip, hip}, 1.0F);
  canvas.paint_both({crotch, end, 0.02F, hip, spread + 0.03F, spread + 0.03F + cuff}, 0.95F);
  canvas.paint({-0.98F, -0.88F, -waist, waist, -waist, waist}, 0.8F);
}

void draw_pullover(Canvas& canvas, Random& random) {
  const Top top = random_top(random, true);
  draw_top(canvas, top, 1.0F);
  const float depth = random.between(0.05F, 0.14F);
  draw_neck(canvas, top, random.between(0.14F, 0.24F), depth);
  const float rib = random.between(0.7F, 0.9F);
  canvas.paint({top.hem_y - 0.12F, top.hem_y, -top.hem, top.hem, -top.hem, top.hem}, rib);
}

void draw_dress(Canvas& canvas, Random& random) {
  const float bust = random.between(0.24F, 0.36F), waist = bust * random.between(0.65F, 0.95F);
  const float waist_y = random.between(-0.4F, -0.1F), hem = random.between(0.32F, 0.62F);
  const float end = random.between(0.85F, 1.0F);
  if (random.chance(0.4F)) {  // short sleeves
    canvas.paint_both({-0.9F, -0.5F, bust * 0.6F, bust, bust, bust + 0.22F}, 0.95F);
  }
  canvas.paint({-0.92F, waist_y, -bust, bust, -waist, waist}, 1.0F);
  canvas.paint({waist_y, end, -waist, waist, -hem, hem}, 0.97F);
  const float neck = bust * random.between(0.4F, 0.7F);
  canvas.paint({-0.98F, random.between(-0.8F, -0.6F), -neck, neck, -neck * 0.3F, neck * 0.3F},
               0.0F);
  canvas.paint({waist_y - 0.05F, waist_y + 0.05F, -waist, waist, -waist, waist},
               random.between(0.6F, 1.1F));
}

void draw_coat(Canvas& canvas, Random& random) {
  Top top = random_top(random, true);
  top.hem = top.chest * random.between(1.0F, 1.2F);
  top.hem_y = 1.0F;
  draw_top(canvas, top, 1.0F);
  const float depth = random.between(0.25F, 0.6F), y = top.shoulder_y;
  canvas.paint({y - 0.03F, y + depth, -0.24F, 0.24F, -0.02F, 0.02F}, random.between(0.1F, 0.4F));
  canvas.paint_both({y - 0.03F, y + depth, 0.14F, 0.3F, 0.02F, 0.12F}, 0.8F);  // lapels
  const float opening = random.between(0.03F, 0.07F);
  canvas.paint({y + depth, top.hem_y, -opening, opening, -opening, opening},
               random.between(0.1F, 0.4F));
  canvas.paint_both({0.25F, 0.33F, 0.15F, 0.38F, 0.15F, 0.38F}, 0.65F);  // pockets
}

void draw_sandal(Canvas& canvas, Random& random) {
  const float heel = random.between(0.0F, 0.5F), sole = random.between(0.08F, 0.16F);
  const float ground = 0.5F;
  const auto foot = [&](float x) { return ground - sole - heel * (x + 0.95F) / 1.9F; };
  // The sole rises from the toes (left) to the heel (right) in steps.
  for (float x = -0.95F; x < 0.9F; x += 0.19F) {
    canvas.paint({foot(x), foot(x) + sole, x, x + 0.21F, x, x + 0.21F}, 1.0F);
  }
  if (heel > 0.15F) canvas.paint({foot(0.8F), ground, 0.72F, 0.95F, 0.8F, 0.92F}, 0.9F);
  // Straps over the toes: each leaves the sole leaning back and comes down again.
  const int straps = 1 + static_cast<int>(random.between(0.0F, 1.99F));
  const float high = random.between(0.2F, 0.35F), wide = random.between(0.1F, 0.2F);
  for (int strap = 0; strap < straps; ++strap) {
    const float x = -0.8F + 0.4F * static_cast<float>(strap);
    canvas.paint({foot(x) - high, foot(x), x + 0.2F, x + 0.2F + wide, x, x + wide}, 0.85F);
    canvas.paint(
        {foot(x) - high, foot(x), x + 0.22F, x + 0.22F + wide, x + 0.42F, x + 0.42F + wide}, 0.8F);
  }
  // The strap behind the heel and the one around the ankle.
  const float ankle = foot(0.6F) - random.between(0.3F, 0.55F), front = random.between(0.2F, 0.4F);
  canvas.paint({ankle, foot(0.85F), 0.82F, 0.93F, 0.8F, 0.93F}, 0.85F);
  canvas.paint({ankle, ankle + 0.11F, front, 0.93F, front, 0.93F}, 0.9F);
  if (random.chance(0.6F)) {
    canvas.paint({ankle, foot(front), front, front + 0.12F, front - 0.3F, front - 0.18F}, 0.8F);
  }
}

void draw_shirt(Canvas& canvas, Random& random) {
  const Top top = random_top(random, random.chance(0.65F));
  draw_top(canvas, top, 1.0F);
  const float depth = random.between(0.12F, 0.28F), y = top.shoulder_y;
  draw_neck(canvas, top, random.between(0.12F, 0.2F), depth);
  canvas.paint_both({y - 0.06F, y + depth, 0.1F, 0.26F, 0.0F, 0.2F}, random.between(1.1F, 1.3F));
  canvas.paint({y + depth, top.hem_y, -0.06F, 0.06F, -0.06F, 0.06F}, random.between(0.8F, 1.2F));
  const int buttons = 4 + static_cast<int>(random.between(0.0F, 2.99F));
  const float gap = (top.hem_y - y - depth) / static_cast<float>(buttons);
  for (int button = 0; button < buttons; ++button) {
    const float at = y + depth + gap * (static_cast<float>(button) + 0.5F);
    canvas.paint({at - 0.04F, at + 0.04F, -0.05F, 0.05F, -0.05F, 0.05F}, 0.2F);
  }
}

void draw_sneaker(Canvas& canvas, Random& random) {
  const float sole = random.between(0.1F, 0.18F), ground = 0.45F;
  const float toe = random.between(0.14F, 0.24F), heel = random.between(0.4F, 0.6F);
  const float base = ground - sole;
  canvas.paint({base - heel, base - toe, 0.25F, 0.92F, -0.35F, 0.95F}, 1.0F);
  canvas.paint({base - toe, base, -0.8F, 0.95F, -0.95F, 0.97F}, 1.0F);
  canvas.paint({base - toe - 0.12F, base - toe, -0.3F, 0.2F, -0.75F, 0.2F}, 1.0F);
  canvas.paint({base - heel - 0.02F, base - heel + 0.1F, 0.35F, 0.8F, 0.45F, 0.7F},
               0.25F);  // collar
  canvas.paint({base, ground, -0.97F, 0.98F, -0.93F, 0.95F}, random.between(0.45F, 1.3F));
  const float stripe = random.between(0.4F, 1.3F), x = random.between(-0.1F, 0.3F);
  canvas.paint({base - toe - 0.1F, base - 0.02F, x, x + 0.12F, x - 0.15F, x - 0.03F}, stripe);
}

void draw_bag(Canvas& canvas, Random& random) {
  const float half = random.between(0.6F, 0.92F), flare = random.between(-0.15F, 0.1F);
  const float top = random.between(-0.3F, 0.0F), bottom = random.between(0.55F, 0.85F);
  if (random.chance(0.85F)) {  // handle
    const float reach = half * random.between(0.35F, 0.75F), thick = 0.1F;
    const float peak = top - random.between(0.25F, 0.6F);
    canvas.paint_both({peak, top, reach * 0.7F - thick, reach * 0.7F, reach - thick, reach}, 0.8F);
    canvas.paint(
        {peak - 0.05F, peak + 0.06F, -reach * 0.7F, reach * 0.7F, -reach * 0.75F, reach * 0.75F},
        0.8F);
  }
  canvas.paint({top, bottom, -half - flare, half + flare, -half, half}, 1.0F);
  if (random.chance(0.6F)) {  // flap
    const float edge = top + (bottom - top) * random.between(0.3F, 0.5F);
    canvas.paint({edge - 0.05F, edge + 0.05F, -half, half, -half, half}, 0.45F);
    canvas.paint({edge - 0.08F, edge + 0.12F, -0.1F, 0.1F, -0.1F, 0.1F}, 1.25F);
  }
}

void draw_boot(Canvas& canvas, Random& random) {
  const float ground = 0.85F, sole = random.between(0.06F, 0.14F), base = ground - sole;
  const float shaft = random.between(-0.9F, -0.4F), ankle = random.between(0.1F, 0.3F);
  const float front = random.between(-0.1F, 0.1F), heel = random.between(0.0F, 0.25F);
  const float foot = base - heel * 0.5F;
  canvas.paint({shaft, ankle, front - 0.05F, 0.8F, front - 0.1F, 0.75F}, 1.0F);
  canvas.paint({ankle, foot - 0.2F, front - 0.1F, 0.75F, -0.8F, 0.85F}, 0.97F);
  canvas.paint({foot - 0.2F, foot, -0.8F, 0.85F, -0.95F, 0.85F}, 0.97F);
  canvas.paint({foot, foot + sole, -0.97F, 0.87F, -0.93F, 0.87F}, 0.55F);
  canvas.paint({foot + sole, ground + 0.02F, 0.45F, 0.87F, 0.55F, 0.85F}, 0.6F);  // heel
  canvas.paint({shaft, shaft + 0.08F, front - 0.05F, 0.8F, front - 0.05F, 0.8F}, 0.7F);
}

}  // namespace

void draw_garment(Canvas& canvas, int label, Random& random) {
  using Draw = void (*)(Canvas&, Random&);
  constexpr std::array<Draw, 10> kDraw{draw_t_shirt, draw_trousers, draw_pullover, draw_dress,
                                       draw_coat,    draw_sandal,   draw_shirt,    draw_sneaker,
                                       draw_bag,     draw_boot};
  kDraw[static_cast<std::size_t>(label)](canvas, random);
}

}  // namespace ringlet::data
