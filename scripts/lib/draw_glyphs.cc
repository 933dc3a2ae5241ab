// Draws Han characters in several fonts, one a picture: identities and their styles for faces.md.
// scripts/glyphs compiles it. stb_truetype reads the fonts; they are the system's own.
//
//   draw_glyphs OUT SIDE CHARACTERS UNSEEN PAIRS SEED FONT...
//
//   OUT/train/CHARACTER/STYLE.pgm   of CHARACTERS characters, all styles but one
//   OUT/val/CHARACTER/STYLE.pgm     that one, another for each character
//   OUT/unseen/CHARACTER/STYLE.pgm  of UNSEEN others, all styles
//   OUT/pairs.txt                   PAIRS of these: every second one of the same character
//
// A character is one that all fonts draw, chosen by SEED; it is named U4E00 by its code point, a
// style by its font. Light on dark, SIDE x SIDE pixels, the glyph's box in the middle.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#define STB_TRUETYPE_IMPLEMENTATION
#include <stb_truetype.h>

namespace {

namespace fs = std::filesystem;

class Font {
 public:
  explicit Font(const fs::path& file) : name_(file.stem().string()) {
    std::ifstream stream(file, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(stream), {});
    const auto* data = reinterpret_cast<const unsigned char*>(bytes_.data());
    const int offset = bytes_.empty() ? -1 : stbtt_GetFontOffsetForIndex(data, 0);
    if (offset < 0 || stbtt_InitFont(&font_, data, offset) == 0) {
      throw std::runtime_error(file.string() + ": is no font that stb_truetype reads");
    }
  }

  const std::string& name() const { return name_; }

  bool draws(int code) const {
    const int glyph = stbtt_FindGlyphIndex(&font_, code);
    return glyph != 0 && stbtt_IsGlyphEmpty(&font_, glyph) == 0;
  }

  /// A PGM.
  std::string draw(int code, int side) const {
    const float scale = stbtt_ScaleForPixelHeight(&font_, 0.95F * static_cast<float>(side));
    int left = 0, top = 0, right = 0, bottom = 0;
    stbtt_GetCodepointBitmapBox(&font_, code, scale, scale, &left, &top, &right, &bottom);
    const int width = right - left, height = bottom - top;
    std::vector<unsigned char> glyph(static_cast<std::size_t>(width) *
                                     static_cast<std::size_t>(height));
    stbtt_MakeCodepointBitmap(&font_, glyph.data(), width, height, width, scale, scale, code);
    std::string picture = "P5\n" + std::to_string(side) + " " + std::to_string(side) + "\n255\n";
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) {
        const int across = x - (side - width) / 2, down = y - (side - height) / 2;
        const bool inside = across >= 0 && across < width && down >= 0 && down < height;
        picture +=
            inside ? static_cast<char>(
                         glyph[static_cast<std::size_t>(down) * static_cast<std::size_t>(width) +
                               static_cast<std::size_t>(across)])
                   : '\0';
      }
    }
    return picture;
  }

 private:
  std::string name_, bytes_;
  stbtt_fontinfo font_{};
};

/// SplitMix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::size_t below(std::size_t count) {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15U;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
    z = (z ^ z >> 27) * 0x94D049BB133111EBU;
    return static_cast<std::size_t>((z ^ z >> 31) % count);
  }

 private:
  std::uint64_t state_;
};

/// The characters that all fonts draw, in a random order.
std::vector<int> characters_of(const std::vector<Font>& fonts, Random& random) {
  constexpr int kFirst = 0x4E00, kLast = 0x9FFF;
  std::vector<int> all;
  for (int code = kFirst; code <= kLast; ++code) {
    bool drawn = true;
    for (const Font& font : fonts) drawn = drawn && font.draws(code);
    if (drawn) all.push_back(code);
  }
  for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random.below(i)]);
  return all;
}

std::string name_of(int code) {
  char name[16];
  std::snprintf(name, sizeof name, "U%04X", static_cast<unsigned>(code));
  return name;
}

void save(const fs::path& file, const std::string& bytes) {
  fs::create_directories(file.parent_path());
  std::ofstream stream(file, std::ios::binary);
  stream << bytes;
  stream.close();
  if (!stream) throw std::runtime_error(file.string() + ": cannot be written");
}

std::string path_of(int code, const Font& font) {
  return "unseen/" + name_of(code) + "/" + font.name() + ".pgm";
}

std::string pairs_of(const std::vector<int>& unseen, const std::vector<Font>& fonts, int pairs,
                     Random& random) {
  std::string text;
  for (int k = 0; k < pairs; ++k) {
    const std::size_t first = random.below(unseen.size()), style = random.below(fonts.size());
    std::size_t second = first, other = random.below(fonts.size() - 1);
    if (k % 2 == 0) {  // the same character in another style
      other += other >= style ? 1 : 0;
    } else {
      second = random.below(unseen.size() - 1);
      second += second >= first ? 1 : 0;
    }
    text += path_of(unseen[first], fonts[style]) + "\t" + path_of(unseen[second], fonts[other]) +
            "\t" + (k % 2 == 0 ? "1" : "0") + "\n";
  }
  return text;
}

int draw_all(int count, char** words) {
  constexpr int kNumbers = 7;
  if (count < kNumbers + 2) throw std::runtime_error("draw_glyphs: at least two fonts are needed");
  const fs::path out = words[1];
  const int side = std::atoi(words[2]), pairs = std::atoi(words[5]);
  const auto seen = static_cast<std::size_t>(std::atoi(words[3]));
  const auto others = static_cast<std::size_t>(std::atoi(words[4]));
  Random random(static_cast<std::uint64_t>(std::atoll(words[6])));
  std::vector<Font> fonts;
  for (int i = kNumbers; i < count; ++i) fonts.emplace_back(words[i]);
  const std::vector<int> all = characters_of(fonts, random);
  if (all.size() < seen + others) {
    throw std::runtime_error("these " + std::to_string(fonts.size()) + " fonts have " +
                             std::to_string(all.size()) + " characters in common, and " +
                             std::to_string(seen + others) +
                             " were asked for; ask for fewer (--characters, --unseen)");
  }
  for (std::size_t i = 0; i < seen; ++i) {
    const std::size_t held = random.below(fonts.size());
    for (std::size_t f = 0; f < fonts.size(); ++f) {
      save(out / (f == held ? "val" : "train") / name_of(all[i]) / (fonts[f].name() + ".pgm"),
           fonts[f].draw(all[i], side));
    }
  }
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(seen);
  const std::vector<int> unseen(begin, begin + static_cast<std::ptrdiff_t>(others));
  for (const int code : unseen) {
    for (const Font& font : fonts) save(out / path_of(code, font), font.draw(code, side));
  }
  save(out / "pairs.txt", pairs_of(unseen, fonts, pairs, random));
  std::printf("%zu characters to learn and %zu others, in %zu styles; %d pairs of the others\n",
              seen, others, fonts.size(), pairs);
  return 0;
}

}  // namespace

int main(int count, char** words) {
  try {
    return draw_all(count, words);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "glyphs: %s\n", error.what());
    return 1;
  }
}
