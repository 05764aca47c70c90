/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The layout of struct hist is HdrHistogram's own for three digits and a lowest
 * value of 1, so that bucket i is entry i of its array of counts.
 *
 * Formats after HdrHistogram's AbstractHistogram.encodeIntoByteBuffer(),
 * ZigZagEncoding, HistogramLogWriter 1.3 and outputPercentileDistribution().
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <zlib.h>

#include "net/hist.h"
#include "result/hdr.h"

enum {
	COOKIE = 0x1c849303 | 0x10, /* 0x10: words of 8 bytes, zigzag LEB128 */
	COOKIE_COMPRESSED = 0x1c849304 | 0x10,
	DIGITS = 3,
	HEAD_BYTES = 40,
	COMPRESSED_HEAD_BYTES = 8,
	MAX_WORD_BYTES = 9,
	STEPS_PER_HALVING = 5,
};

struct bytes {
	uint8_t *at;
	size_t n;
};

static void put_number(struct bytes *bytes, uint64_t value, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		bytes->at[bytes->n++] = (uint8_t)(value >> 8 * (n - 1 - i));
}

/* Seven bits a byte, the sign lowest; a ninth byte has all of its eight. */
static void put_word(struct bytes *bytes, int64_t value)
{
	uint64_t rest = (uint64_t)value << 1 ^ (uint64_t)(value >> 63);

	for (uint32_t i = 0; i < MAX_WORD_BYTES - 1 && rest > 127; i++) {
		bytes->at[bytes->n++] = (uint8_t)(rest | 128);
		rest >>= 7;
	}
	bytes->at[bytes->n++] = (uint8_t)rest;
}

/* Counts, up to the last that is not 0; a run of zeros as its length below 0.
 */
static void put_counts(struct bytes *bytes, const struct hist *hist)
{
	uint32_t n = HIST_BUCKETS, n_zeros = 0;

	while (n > 0 && hist->counts[n - 1] == 0)
		n--;
	for (uint32_t i = 0; i < n; i++) {
		if (hist->counts[i] == 0) {
			n_zeros++;
			continue;
		}
		if (n_zeros > 0)
			put_word(bytes, -(int64_t)n_zeros);
		put_word(bytes, (int64_t)hist->counts[i]);
		n_zeros = 0;
	}
}

static void put_histogram(struct bytes *bytes, const struct hist *hist)
{
	const double ratio = 1;
	struct bytes length;
	uint64_t bits;

	memcpy(&bits, &ratio, sizeof(bits));
	put_number(bytes, COOKIE, 4);
	length = (struct bytes){ .at = bytes->at + bytes->n };
	put_number(bytes, 0, 4);
	put_number(bytes, 0, 4); /* the array is not rotated */
	put_number(bytes, DIGITS, 4);
	put_number(bytes, 1, 8); /* lowest value that is told from 0 */
	put_number(bytes, (1ull << HIST_VALUE_BITS) - 1, 8);
	put_number(bytes, bits, 8);
	put_counts(bytes, hist);
	put_number(&length, bytes->n - HEAD_BYTES, 4);
}

static void base64(const struct bytes *bytes, FILE *to)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz"
				     "0123456789+/";

	for (size_t i = 0; i < bytes->n; i += 3) {
		const size_t n = bytes->n - i;
		const uint32_t word =
			(uint32_t)bytes->at[i] << 16 |
			(n > 1 ? (uint32_t)bytes->at[i + 1] << 8 : 0) |
			(n > 2 ? bytes->at[i + 2] : 0);

		fputc(digits[word >> 18], to);
		fputc(digits[word >> 12 & 63], to);
		fputc(n > 1 ? digits[word >> 6 & 63] : '=', to);
		fputc(n > 2 ? digits[word & 63] : '=', to);
	}
}

static bool encode(const struct hist *hist, FILE *to)
{
	/* Each bucket may need a word for itself and one for zeros before. */
	const size_t n_bytes = HEAD_BYTES + HIST_BUCKETS * MAX_WORD_BYTES;
	uLongf n_compressed = compressBound(n_bytes);
	struct bytes plain = { .at = malloc(n_bytes) };
	struct bytes packed = { .at = malloc(COMPRESSED_HEAD_BYTES +
					     n_compressed) };
	bool is_good = plain.at != NULL && packed.at != NULL;

	if (is_good) {
		put_histogram(&plain, hist);
		is_good = compress2(packed.at + COMPRESSED_HEAD_BYTES,
				    &n_compressed, plain.at, plain.n,
				    Z_BEST_COMPRESSION) == Z_OK;
	}
	if (is_good) {
		put_number(&packed, COOKIE_COMPRESSED, 4);
		put_number(&packed, n_compressed, 4);
		packed.n += n_compressed;
		base64(&packed, to);
	}
	free(plain.at);
	free(packed.at);
	return is_good;
}

void hdr_log_head(double start_s, FILE *to)
{
	const time_t seconds = (time_t)start_s;
	char date[64];
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &tm);
	fprintf(to,
		"#[Histogram log format version 1.3]\n"
		"#[StartTime: %.3f (seconds since epoch), %s]\n"
		"\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\","
		"\"Interval_Compressed_Histogram\"\n",
		start_s, date);
}

bool hdr_log_line(const char *tag, double start_s, double length_s,
		  const struct hist *hist, FILE *to)
{
	bool is_good;

	fprintf(to, "Tag=%s,%.3f,%.3f,%.3f,", tag, start_s, length_s,
		(double)hist->max / 1e6);
	is_good = encode(hist, to);
	fputc('\n', to);
	return is_good && !ferror(to);
}

double hdr_next_percentile(double p, double n)
{
	const double halvings = floor(log2(100 / (100 - p)));
	const double next = p + 100 / (STEPS_PER_HALVING * exp2(halvings + 1));

	return next < 100 && (100 - next) / 100 * n >= 0.5 ? next : 100;
}

/* How many values are in buckets up to that of value. */
static uint64_t count_to(const struct hist *hist, uint64_t value)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i <= hist_bucket(value); i++)
		n += hist->counts[i];
	return n;
}

void hdr_percentiles(const struct hist *hist, FILE *to)
{
	double p = 0;

	fprintf(to, "%12s %14s %10s %14s\n\n", "Value", "Percentile",
		"TotalCount", "1/(1-Percentile)");
	while (hist->n > 0) {
		const uint64_t value = hist_at(hist, p);
		const unsigned long long n = count_to(hist, value);

		fprintf(to, "%12.3f %14.12f %10llu", (double)value / 1e3,
			p / 100, n);
		if (p >= 100) {
			fputc('\n', to);
			break;
		}
		fprintf(to, " %14.2f\n", 100 / (100 - p));
		p = hdr_next_percentile(p, (double)hist->n);
	}
	fprintf(to,
		"#[Mean    = %12.3f, StdDeviation   = %12.3f]\n"
		"#[Max     = %12.3f, Total count    = %12llu]\n"
		"#[Buckets = %12d, SubBuckets     = %12d]\n",
		hist_mean(hist) / 1e3, hist_stddev(hist) / 1e3,
		(double)hist->max / 1e3, (unsigned long long)hist->n,
		HIST_VALUE_BITS - HIST_SUB_BITS, 2 << HIST_SUB_BITS);
}
