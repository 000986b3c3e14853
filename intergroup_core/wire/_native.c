/* What is done to every byte of every frame, in one pass over memory: frames are filled and sealed, or checked.
 *
 * numpy does the same wherever this could not be built (checksum.py, frames.py); docs/decisions/0020 says why both
 * are there. The checksum is defined in checksum.py. Here nothing is decided: no
 * frame is dropped, and of a header only whether its six words go on from those of the frame before.
 */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000 /* one build serves Python 3.11 and all later ones */
#include <Python.h>

#include <stdint.h>
#include <string.h>

#ifndef WIDTH
#define WIDTH 8 /* words that are taken at a time where the processor can; tests build it with less */
#endif
#if defined(__x86_64__) && defined(__GNUC__) && WIDTH > 1
#define HAS_VECTORS 1
#include <immintrin.h>
#endif

#define MEANING 2 /* native.py takes a module of this number only, not what an older source left behind */
#define HEADER_WORDS 6
#define MAX_WORDS 8188 /* MAX_FRAME_BYTES of header.py */
#define FRAGMENT_STEP ((uint64_t)1 << 48)
#define GOLDEN 0x9E3779B97F4A7C15u

/* Of the lower and of the upper 32-bit half of each word of a frame. What is one too many is no weight: who reads four
 * bytes further on must find memory there. */
static uint64_t lower_weights[MAX_WORDS + 1], upper_weights[MAX_WORDS + 1];

/* The end of splitmix64. */
static uint64_t mixed(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static void make_weights(void) {
    for (uint64_t word = 0; word < MAX_WORDS; word++) {
        lower_weights[word] = mixed((2 * word + 1) * GOLDEN) | 1;
        upper_weights[word] = (mixed((2 * word + 2) * GOLDEN) | 1) + (lower_weights[word] << 32);
    }
}

/* The sum of words from weight `first` on. */
typedef uint64_t Sum(const char *words, Py_ssize_t first, Py_ssize_t count);

static uint64_t sum_plainly(const char *words, Py_ssize_t first, Py_ssize_t count) {
    uint64_t sum = 0;
    for (Py_ssize_t at = 0; at < count; at++) {
        uint64_t word;
        memcpy(&word, words + 8 * at, 8);
        sum += (uint32_t)word * lower_weights[first + at] + (word >> 32) * upper_weights[first + at];
    }
    return sum;
}

#ifdef HAS_VECTORS
/* The processor multiplies the lower 32 bits of each word, so a weight of 64 goes in two parts, of which the upper one
 * is read from where it lies in memory; the sums by the upper ones are moved to where they belong at the end. */
__attribute__((target("avx2"))) static uint64_t sum_by_four(const char *words, Py_ssize_t first, Py_ssize_t count) {
    const char *lowers = (const char *)(lower_weights + first), *uppers = (const char *)(upper_weights + first);
    __m256i low = _mm256_setzero_si256(), high = low, low_too = low, high_too = low;
    Py_ssize_t at = 0;
    for (; at + 32 <= 8 * count; at += 32) {
        __m256i lower = _mm256_loadu_si256((const __m256i *)(words + at));
        __m256i upper = _mm256_shuffle_epi32(lower, 0xF5);
        low = _mm256_add_epi64(low, _mm256_mul_epu32(lower, _mm256_loadu_si256((const __m256i *)(lowers + at))));
        high = _mm256_add_epi64(high, _mm256_mul_epu32(lower, _mm256_loadu_si256((const __m256i *)(lowers + at + 4))));
        low_too = _mm256_add_epi64(low_too, _mm256_mul_epu32(upper, _mm256_loadu_si256((const __m256i *)(uppers + at))));
        high_too =
            _mm256_add_epi64(high_too, _mm256_mul_epu32(upper, _mm256_loadu_si256((const __m256i *)(uppers + at + 4))));
    }
    uint64_t lows[4], highs[4];
    _mm256_storeu_si256((__m256i *)lows, _mm256_add_epi64(low, low_too));
    _mm256_storeu_si256((__m256i *)highs, _mm256_add_epi64(high, high_too));
    uint64_t sum = lows[0] + lows[1] + lows[2] + lows[3];
    sum += (highs[0] + highs[1] + highs[2] + highs[3]) << 32;
    return sum + sum_plainly(words + at, first + at / 8, count - at / 8);
}

__attribute__((target("avx512f"))) static uint64_t sum_by_eight(const char *words, Py_ssize_t first, Py_ssize_t count) {
    const char *lowers = (const char *)(lower_weights + first), *uppers = (const char *)(upper_weights + first);
    __m512i low = _mm512_setzero_si512(), high = low, low_too = low, high_too = low;
    Py_ssize_t at = 0;
    for (; at + 64 <= 8 * count; at += 64) {
        __m512i lower = _mm512_loadu_si512(words + at);
        __m512i upper = _mm512_shuffle_epi32(lower, 0xF5);
        low = _mm512_add_epi64(low, _mm512_mul_epu32(lower, _mm512_loadu_si512(lowers + at)));
        high = _mm512_add_epi64(high, _mm512_mul_epu32(lower, _mm512_loadu_si512(lowers + at + 4)));
        low_too = _mm512_add_epi64(low_too, _mm512_mul_epu32(upper, _mm512_loadu_si512(uppers + at)));
        high_too = _mm512_add_epi64(high_too, _mm512_mul_epu32(upper, _mm512_loadu_si512(uppers + at + 4)));
    }
    uint64_t sum = _mm512_reduce_add_epi64(_mm512_add_epi64(low, low_too));
    sum += (uint64_t)_mm512_reduce_add_epi64(_mm512_add_epi64(high, high_too)) << 32;
    return sum + sum_plainly(words + at, first + at / 8, count - at / 8);
}
#endif

static Sum *sum_of = sum_plainly;

/* Rows of whole words, each one frame; they may lie apart. */
typedef struct {
    Py_buffer buffer;
    Py_ssize_t count, words;
} Frames;

static uint64_t *row(const Frames *frames, Py_ssize_t at) {
    return (uint64_t *)((char *)frames->buffer.buf + at * frames->buffer.strides[0]);
}

static int take_frames(PyObject *given, Frames *frames, int flags) {
    Py_buffer *buffer = &frames->buffer;
    if (PyObject_GetBuffer(given, buffer, PyBUF_STRIDES | flags) < 0)
        return -1;
    if (buffer->ndim != 2 || buffer->itemsize != 8 || buffer->strides[1] != 8 || buffer->strides[0] % 8 ||
        (uintptr_t)buffer->buf % 8 || buffer->shape[1] < HEADER_WORDS || buffer->shape[1] > MAX_WORDS) {
        PyErr_SetString(PyExc_ValueError, "frames are rows of 6 to 8188 words of 8 bytes");
        PyBuffer_Release(buffer);
        return -1;
    }
    frames->count = buffer->shape[0];
    frames->words = buffer->shape[1];
    return 0;
}

static int take_bytes(PyObject *given, Py_buffer *buffer, Py_ssize_t wanted, int flags) {
    if (PyObject_GetBuffer(given, buffer, PyBUF_SIMPLE | flags) < 0)
        return -1;
    if (buffer->len != wanted) {
        PyErr_Format(PyExc_ValueError, "%zd bytes beside frames that go with %zd", buffer->len, wanted);
        PyBuffer_Release(buffer);
        return -1;
    }
    return 0;
}

static PyObject *seal(PyObject *module, PyObject *args) {
    PyObject *given, *given_firsts;
    Frames frames;
    Py_buffer firsts;
    if (!PyArg_ParseTuple(args, "OO:seal", &given, &given_firsts) || take_frames(given, &frames, PyBUF_WRITABLE) < 0)
        return NULL;
    if (take_bytes(given_firsts, &firsts, frames.count * 8, PyBUF_WRITABLE) < 0) {
        PyBuffer_Release(&frames.buffer);
        return NULL;
    }
    for (Py_ssize_t at = 0; at < frames.count; at++) {
        uint64_t *frame = row(&frames, at);
        frame[0] |= sum_of((const char *)frame, 0, frames.words) >> 32;
        memcpy((char *)firsts.buf + 8 * at, frame, 8);
    }
    PyBuffer_Release(&firsts);
    PyBuffer_Release(&frames.buffer);
    Py_RETURN_NONE;
}

static PyObject *fill(PyObject *module, PyObject *args) {
    PyObject *given, *given_header, *given_payload, *given_firsts;
    Frames frames;
    Py_buffer payload, firsts, header;
    uint64_t next[HEADER_WORDS];
    if (!PyArg_ParseTuple(args, "OOOO:fill", &given, &given_header, &given_payload, &given_firsts) ||
        take_bytes(given_header, &header, sizeof next, 0) < 0)
        return NULL;
    memcpy(next, header.buf, sizeof next);
    PyBuffer_Release(&header);
    if (take_frames(given, &frames, PyBUF_WRITABLE) < 0)
        return NULL;
    Py_ssize_t body = (frames.words - HEADER_WORDS) * 8;
    if (take_bytes(given_payload, &payload, frames.count * body, 0) < 0)
        goto no_payload;
    if (take_bytes(given_firsts, &firsts, frames.count * 8, PyBUF_WRITABLE) < 0)
        goto no_firsts;
    for (Py_ssize_t at = 0; at < frames.count; at++) {
        uint64_t *frame = row(&frames, at);
        const char *content = (const char *)payload.buf + at * body;
        /* Of what is copied and not of the copy: that may still be on its way to memory. */
        uint64_t sum = sum_of((const char *)next, 0, HEADER_WORDS) + sum_of(content, HEADER_WORDS, body / 8);
        memcpy(frame + HEADER_WORDS, content, body);
        memcpy(frame, next, sizeof next);
        frame[0] |= sum >> 32;
        memcpy((char *)firsts.buf + 8 * at, frame, 8);
        next[1] += FRAGMENT_STEP;
        next[4]++;
        next[5]++;
    }
    PyBuffer_Release(&firsts);
    PyBuffer_Release(&payload);
    PyBuffer_Release(&frames.buffer);
    Py_RETURN_NONE;
no_firsts:
    PyBuffer_Release(&payload);
no_payload:
    PyBuffer_Release(&frames.buffer);
    return NULL;
}

static int is_sound(const uint64_t *frame, Py_ssize_t words) {
    uint64_t stated = (uint32_t)frame[0];
    return (sum_of((const char *)frame, 0, words) - stated * lower_weights[0]) >> 32 == stated;
}

static PyObject *check(PyObject *module, PyObject *args) {
    PyObject *given, *given_sound;
    Frames frames;
    Py_buffer sound;
    if (!PyArg_ParseTuple(args, "OO:check", &given, &given_sound) || take_frames(given, &frames, 0) < 0)
        return NULL;
    if (take_bytes(given_sound, &sound, frames.count, PyBUF_WRITABLE) < 0) {
        PyBuffer_Release(&frames.buffer);
        return NULL;
    }
    for (Py_ssize_t at = 0; at < frames.count; at++)
        ((char *)sound.buf)[at] = is_sound(row(&frames, at), frames.words);
    PyBuffer_Release(&sound);
    PyBuffer_Release(&frames.buffer);
    Py_RETURN_NONE;
}

static PyObject *total(PyObject *module, PyObject *given) {
    Py_buffer frame;
    if (PyObject_GetBuffer(given, &frame, PyBUF_SIMPLE) < 0)
        return NULL;
    if (frame.len % 8 || frame.len > 8 * MAX_WORDS) {
        PyErr_Format(PyExc_ValueError, "a frame is up to 8188 words of 8 bytes, not %zd bytes", frame.len);
        PyBuffer_Release(&frame);
        return NULL;
    }
    uint64_t sum = sum_of(frame.buf, 0, frame.len / 8);
    PyBuffer_Release(&frame);
    return PyLong_FromUnsignedLongLong(sum);
}

/* Whether a header is that of the frame before it counted up: checksums apart, the words of each differ by these. */
static int continues(const uint64_t *frame, const uint64_t *before) {
    return frame[0] >> 32 == before[0] >> 32 && frame[1] - before[1] == FRAGMENT_STEP && frame[2] == before[2] &&
           frame[3] == before[3] && frame[4] - before[4] == 1 && frame[5] - before[5] == 1;
}

static PyObject *scan(PyObject *module, PyObject *args) {
    PyObject *given, *given_sound, *given_firsts, *given_seams;
    Frames frames;
    Py_buffer sound, firsts, seams;
    Py_ssize_t found = 0;
    if (!PyArg_ParseTuple(args, "OOOO:scan", &given, &given_sound, &given_firsts, &given_seams) ||
        take_frames(given, &frames, 0) < 0)
        return NULL;
    if (take_bytes(given_sound, &sound, frames.count, PyBUF_WRITABLE) < 0)
        goto no_sound;
    if (take_bytes(given_firsts, &firsts, frames.count * 8, PyBUF_WRITABLE) < 0)
        goto no_firsts;
    if (take_bytes(given_seams, &seams, frames.count * 8, PyBUF_WRITABLE) < 0)
        goto no_seams;
    for (Py_ssize_t at = 0; at < frames.count; at++) {
        const uint64_t *frame = row(&frames, at);
        ((char *)sound.buf)[at] = is_sound(frame, frames.words);
        memcpy((char *)firsts.buf + 8 * at, frame, 8);
        if (at && !continues(frame, row(&frames, at - 1))) {
            int64_t seam = at;
            memcpy((char *)seams.buf + 8 * found++, &seam, 8);
        }
    }
    PyBuffer_Release(&seams);
    PyBuffer_Release(&firsts);
    PyBuffer_Release(&sound);
    PyBuffer_Release(&frames.buffer);
    return PyLong_FromSsize_t(found);
no_seams:
    PyBuffer_Release(&firsts);
no_firsts:
    PyBuffer_Release(&sound);
no_sound:
    PyBuffer_Release(&frames.buffer);
    return NULL;
}

static PyObject *digest(PyObject *module, PyObject *args) {
    PyObject *given;
    unsigned long long base;
    Py_buffer firsts;
    uint64_t total = 0;
    if (!PyArg_ParseTuple(args, "OK:digest", &given, &base) || PyObject_GetBuffer(given, &firsts, PyBUF_STRIDES) < 0)
        return NULL;
    if (firsts.ndim != 1 || firsts.itemsize != 8) {
        PyErr_SetString(PyExc_ValueError, "first words are words of 8 bytes");
        PyBuffer_Release(&firsts);
        return NULL;
    }
    for (Py_ssize_t at = 0; at < firsts.shape[0]; at++) {
        uint64_t first;
        memcpy(&first, (const char *)firsts.buf + at * firsts.strides[0], 8);
        total += mixed(first ^ (base + (uint64_t)at * GOLDEN));
    }
    PyBuffer_Release(&firsts);
    return PyLong_FromUnsignedLongLong(total);
}

static PyMethodDef methods[] = {
    {"seal", seal, METH_VARARGS,
     "seal(frames, firsts)\n\nWrite the checksum of every frame; `firsts` are their first words with it."},
    {"fill", fill, METH_VARARGS,
     "fill(frames, header, payload, firsts)\n\nFrames from the header of the first and all their payloads, sealed."},
    {"check", check, METH_VARARGS, "check(frames, sound)\n\nWhich frames carry their checksum."},
    {"scan", scan, METH_VARARGS,
     "scan(frames, sound, firsts, seams)\n\nThe same, their first words, and where a header is not that of the frame "
     "before counted up: so many."},
    {"total", total, METH_O, "total(frame)\n\nThe sum of one frame, as it stands, of which the checksum is made."},
    {"digest", digest, METH_VARARGS,
     "digest(firsts, base)\n\nThe sum over frames of a number made from its first word, the base and its place."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_native", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__native(void) {
    make_weights();
#ifdef HAS_VECTORS
    if (__builtin_cpu_supports("avx2"))
        sum_of = sum_by_four;
    if (WIDTH > 4 && __builtin_cpu_supports("avx512f"))
        sum_of = sum_by_eight;
#endif
    PyObject *module = PyModule_Create(&definition);
    if (module && PyModule_AddIntConstant(module, "MEANING", MEANING) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
