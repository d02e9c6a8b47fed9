// Who has to make room when places are used up, and who is one too many.
import { expect, test } from 'vitest';
import { createSharedPlaces } from './shared-places.ts';

function open(limit: number, weights = [8, 9]) {
  const ended: string[] = [];
  const places = createSharedPlaces<string>({ limit, weights, end: (holder) => ended.push(holder) });
  const path = (tenant: string, address = '1') => [tenant, address];
  return { places, ended, path };
}

test('the longest idle holder makes room for a new connection of its own tenant', () => {
  const { places, ended, path } = open(10);
  for (let at = 0; at < 20; at++) expect(places.add(`a${at}`, path('a'))).toBe(true);
  expect(ended.slice(0, 2)).toEqual(['a0', 'a1']);
  expect(places.count).toBeLessThan(10);
  places.setIdle(`a${20 - places.count}`, true);
  const before = ended.length;
  places.add('newest', path('a'));
  expect(ended[before]).toBe(`a${21 - places.count}`);
});

test('one tenant never takes the last place, so another finds one at once', () => {
  const { places, ended, path } = open(10);
  for (let at = 0; at < 9; at++) {
    expect(places.add(`a${at}`, path('a'))).toBe(at < 8);
    places.setIdle(`a${at}`, false);
  }
  places.remove('a8');
  expect(places.add('b', path('b'))).toBe(true);
  expect(ended).toEqual([]);
});

test('the largest tenant makes room for a smaller one, from its address with most idle holders', () => {
  const { places, ended, path } = open(100);
  for (let at = 0; at < 60; at++) places.add(`big${at}`, path('a', 'big'));
  for (let at = 0; at < 20; at++) places.add(`small${at}`, path('a', 'small'));
  expect(ended).toEqual([]);
  for (let at = 0; at < 30; at++) expect(places.add(`b${at}`, path('b'))).toBe(true);
  expect(ended.every((holder) => holder.startsWith('big'))).toBe(true);
  expect(places.count).toBeLessThan(100);
});

test('a tenant whose holders are all busy gets no more room at the cost of smaller ones', () => {
  const { places, ended, path } = open(20);
  places.add('small', path('b'));
  const welcome: boolean[] = [];
  for (let at = 0; at < 20; at++) {
    welcome.push(places.add(`a${at}`, path('a')));
    places.setIdle(`a${at}`, false);
  }
  expect(welcome.at(-1)).toBe(false);
  expect(ended).toEqual([]);
});

test('an authenticated holder counts for its account from then on', () => {
  const { places, ended, path } = open(10);
  places.add('one', path('unproved'));
  places.setIdle('one', false);
  expect(places.move('one', path('account'))).toBe(true);
  places.setIdle('one', true);
  for (let at = 0; at < 20; at++) places.add(`u${at}`, path('unproved'));
  expect(ended).not.toContain('one');
  places.remove('one');
  places.remove('one');
});

test('a crowd of one group leaves places to the group beside it, and makes room before it does', () => {
  const { places, ended } = open(100, [8, 9, 9]);
  const own = ['a', 'own', '1'];
  // Of one address, which has more idle ones than any of the crowd.
  for (let at = 0; at < 5; at++) places.add(`own${at}`, own);
  for (let at = 0; at < 90; at++) places.add(`idle url${at}`, ['a', 'url', String(at)]);
  expect(ended.length).toBeGreaterThan(0);
  for (let at = 0; at < 90; at++) {
    const isWelcome = places.add(`url${at}`, ['a', 'url', String(at)]);
    if (isWelcome) places.setIdle(`url${at}`, false);
    else places.remove(`url${at}`);
  }
  expect(ended.filter((holder) => !holder.startsWith('idle url'))).toEqual([]);
  expect(places.add('own', own)).toBe(true);
  expect(ended.filter((holder) => !holder.startsWith('idle url'))).toEqual([]);
});
