import type { JSONRPCClient, Signal } from './weft.js';

/** Where a stream was read to. Keep it as it is: journal is opaque. */
export interface Position {
    seq: number;
    journal?: string;
}

export interface StreamValue<T = unknown> extends Position {
    value: T;
    /** It begins anew: forget what you had. */
    fresh: boolean;
}

export interface SubscriptionState {
    name: 'asking' | 'live' | 'catchingUp' | 'lost' | 'paused' | 'ended';
    resumed?: boolean;
    /** epochChanged, trimmed or futureSeq when it begins anew; why it waits when it is lost. */
    reason?: string;
    /** Events up to the end of the journal; not more than so many values follow. */
    behind?: number;
    retryAt?: number;
    error?: Error;
}

export interface SubscribeOptions<T = unknown> {
    position?: Position;
    /** Instead of the iterator. */
    onValue?: (value: T, item: StreamValue<T>) => void;
    onState?: (state: SubscriptionState, subscription: Subscription<T>) => void;
    /** tinyvex/error about this subscription. */
    onNotice?: (params: any) => void;
    signal?: Signal;
    /** Values of a log that wait for the iterator's reader before it pauses; 1000 when absent. */
    maxWaiting?: number;
}

export declare class Subscription<T = unknown> implements AsyncIterable<StreamValue<T>> {
    private constructor();
    readonly name: string;
    readonly mode: 'log' | 'state' | undefined;
    readonly state: SubscriptionState;
    readonly position: Position | undefined;
    close(): void;
    [Symbol.asyncIterator](): AsyncIterator<StreamValue<T>>;
}

export type HubState =
    | { name: 'live' }
    | { name: 'catchingUp'; behind: number }
    | { name: 'offline'; since: number; retryAt?: number };

export declare class Subscriptions {
    static of(client: JSONRPCClient): Subscriptions;
    constructor(client: JSONRPCClient);
    readonly client: JSONRPCClient;
    readonly connected: boolean;
    readonly state: HubState;
    onState(watch: (state: HubState) => void): () => void;
    subscribe<T = unknown>(name: string, params?: Record<string, unknown>, options?: SubscribeOptions<T>): Subscription<T>;
}

export declare function subscribe<T = unknown>(client: JSONRPCClient, name: string, params?: Record<string, unknown>,
    options?: SubscribeOptions<T>): Subscription<T>;
