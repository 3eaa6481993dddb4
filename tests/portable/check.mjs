// Holds the core in Node to the golden vectors: node check.mjs core.js vectors.json, where core.js is what transpile.mjs wrote.

import { deepStrictEqual } from "node:assert";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [corePath, vectorsPath] = process.argv.slice(2);
const { prefix, layout, plan, pricing } = await import(pathToFileURL(resolve(corePath)));
const vectors = JSON.parse(readFileSync(vectorsPath, "utf8"));

const hex = (bytes) => Buffer.from(bytes).toString("hex");
// An object with the names of a vector's fields in place of the bindings'.
const snake = (value) =>
    Object.fromEntries(Object.entries(value).map(([key, field]) => [key.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`), field]));
// What a call refuses with: it is thrown as it is, or as the payload of an `Error`.
const refusal = (call) => {
    try {
        call();
    } catch (error) {
        return error.payload ?? error;
    }
    throw new Error("nothing was refused");
};

function digests() {
    let namespace;
    for (const { name, namespace: given, ...expected } of vectors.digests) {
        const { block_tokens: blockTokens, tenant, extensions, ...rest } = given;
        namespace = { ...rest, blockTokens, tenant: Uint8Array.from(tenant), extensions: Object.entries(extensions) };
        const tokens = Uint32Array.from(
            { length: vectors.blocks * blockTokens },
            (_, j) => Math.imul(j, 2654435761) >>> expected.shift,
        );
        const extras = expected.extras.map(([position, text]) => ({ position: BigInt(position), bytes: Buffer.from(text) }));
        deepStrictEqual(hex(prefix.root(namespace)), expected.root, name);
        const named = prefix.digests(namespace, undefined, tokens, extras);
        for (const [block, digest] of expected.digests) {
            deepStrictEqual(hex(named.slice(32 * block, 32 * block + 32)), digest, `${name}, block ${block}`);
        }
        // The second half from where the first one ends.
        if (extras.length === 0) {
            const mark = { digest: named.slice(32 * 8, 32 * 9), blocks: 9 };
            const second = prefix.digests(namespace, mark, tokens.slice(9 * blockTokens), []);
            deepStrictEqual(hex(second), hex(named.slice(32 * 9)), name);
        }
        deepStrictEqual(hex(prefix.engineDigests(namespace, Uint8Array.from({ length: 32 }, (_, i) => i))), expected.engine, name);
    }
    deepStrictEqual(refusal(() => prefix.root({ ...namespace, model: "" })).tag, "namespace");
}

// A group as a vector has it; 64-bit numbers are BigInts here.
const group = ({ fingerprint, types, sections, ...rest }) => ({
    ...snake({ ...rest, recordBytes: Number(rest.recordBytes), slotBytes: Number(rest.slotBytes) }),
    fingerprint: hex(fingerprint),
    types: types.map((type) => snake({ ...type, layers: [...type.layers], start: Number(type.start) })),
    sections: [...sections].map(Number),
});

function layouts() {
    for (const { model, ...expected } of vectors.layouts) {
        const types = model.types.map(({ kind, parameter, layers, row_bytes: rowBytes, row_format: rowFormat, ...rest }) => ({
            ...rest,
            kind: { tag: kind, val: parameter },
            layers: Uint16Array.from(layers),
            rowBytes,
            rowFormat,
        }));
        const laid = layout.layoutOf({ ...model, types }, expected.block_tokens);
        deepStrictEqual(laid.blockMultiple, expected.block_multiple);
        deepStrictEqual(laid.zeroReplayTokens, expected.zero_replay_tokens);
        deepStrictEqual(laid.groups.map(group), expected.groups);
    }
    for (const preset of vectors.presets) {
        const laid = layout.layoutOf(layout.preset(preset.name), 128);
        const found = group(laid.groups.find(({ name }) => name === preset.group));
        deepStrictEqual([found.record_bytes, found.fingerprint], [preset.record_bytes, preset.fingerprint], preset.name);
    }
    deepStrictEqual(refusal(() => layout.preset("v5")).tag, "name");
}

const lookup = ([promptTokens, matchedTokens, checkpointTokens, replayTokens]) => ({
    promptTokens,
    matchedTokens,
    checkpointTokens,
    replayTokens: replayTokens ?? undefined,
});
const numbers = ({ computedTokens, adoptedTokens, replayedTokens }) => [computedTokens, adoptedTokens, replayedTokens];

function plans() {
    for (const { lookup: found, candidates, min_compute: taken } of vectors.plans) {
        deepStrictEqual(plan.candidates(lookup(found)).map(numbers), candidates);
        deepStrictEqual(numbers(plan.minCompute(lookup(found))), candidates[taken]);
    }
    deepStrictEqual(refusal(() => plan.minCompute(lookup([100, 100, 0, null]))), "no-token-left");
    for (const { lookup: found, prices, sizes, costs, min_time: taken } of vectors.prices) {
        const [loadBytesPerSecond, loadRecordNs, tokenPs, contextPs] = prices.map(BigInt);
        const [blockTokens, blockBytes, checkpointBytes, checkpointRecords] = sizes;
        const asked = [
            lookup(found),
            { loadBytesPerSecond, loadRecordNs, tokenPs, contextPs },
            { blockTokens, blockBytes: BigInt(blockBytes), checkpointBytes: BigInt(checkpointBytes), checkpointRecords },
        ];
        const priced = pricing.costs(...asked);
        deepStrictEqual(priced.map(({ cost }) => [cost.loadBytes, cost.loadNs, cost.prefillNs].map(String)), costs);
        deepStrictEqual(pricing.minTime(...asked), priced[taken]);
    }
}

digests();
layouts();
plans();
const count = ["digests", "layouts", "presets", "plans", "prices"].reduce((sum, kind) => sum + vectors[kind].length, 0);
console.log(`${count} vectors hold`);
